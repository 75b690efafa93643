"""This toolkit, by its calls for notebooks."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

import interp
from benchmarks.conformance.libraries import Edges, Ids, Library, Site, Subject
from benchmarks.conformance.types import ENCODER
from interp.models.sites import attention_by, locate, recorded
from tests.zoo.check import refused


class Adapter(Library):
    """One prompt, pair or batch per call."""

    packages = ("interp",)
    sites = ("resid_pre", "resid_mid", "resid_post", "attn_out", "mlp_out")
    reduced = "norm"
    by_module = False

    def __init__(self, subject: Subject) -> None:
        super().__init__(subject)
        self._model = interp.Model(subject.type, subject.hf, subject.tokenizer)

    def activation(self, ids: Ids, site: Site) -> Tensor:
        places = {"sites": [site.name], "layers": [site.layer], "roles": ["all"], "tokens": "all"}
        found = interp.activations(self._model, [self.subject.prompts[ids]], **places)
        refused(found.table("answers"))
        return torch.tensor(np.stack(found.table("activation_vectors")["vector"].tolist()))

    def weights(self, ids: Ids, layer: int) -> Tensor:
        place = locate(self._model, "pattern", layer)
        with torch.no_grad(), attention_by(self._model, "eager"), recorded({0: place}) as found:
            self._model.hf(input_ids=torch.tensor([ids]))
        return found[0][0]

    def patched(self, base: Ids, other: Ids, site: Site, position: int) -> float:
        pair = [self.subject.prompts[own] for own in (other, base)]
        places = {"sites": [site.name], "layers": [site.layer], "granularity": "position"}
        found = interp.patch(self._model, pair, **places)
        refused(found.pairs)
        (effect,) = found.patches.loc[found.patches["position"] == position, "effect"]
        return float(found.pairs["base_metric"].iloc[0] + effect)

    def _scores(self, given: Sequence[Ids], method: str) -> list[Tensor]:
        prompts = [self.subject.prompts[ids] for ids in given]
        options = {"target": "contrast", "methods": [method], "keep_tokens": True}
        found = interp.attribute(self._model, prompts, **options)
        refused(found.segment_scores)
        rows = found.table("token_scores")
        each = [rows.loc[rows["prompt_id"] == prompt.id, "score"] for prompt in prompts]
        return [torch.tensor(own.tolist(), dtype=torch.float64) for own in each]

    def gradients(self, given: Sequence[Ids]) -> list[Tensor]:
        return self._scores(given, "input_gradient")

    def integrated(self, ids: Ids, other: Ids) -> tuple[Tensor, Ids, int]:
        # What is explained of a class is the correct one.
        answer = self.subject.prompts[ids].answer
        sign = -1 if self.subject.type == ENCODER and answer.gold == "No" else 1
        return sign * self._scores([ids], "integrated_gradients")[0], other, 20

    def edges(self, base: Ids, other: Ids) -> Edges:
        pair = [self.subject.prompts[own] for own in (other, base)]
        found = interp.edges(self._model, pair, methods=["gradient"], directions=["denoising"])
        refused(found.pairs)
        return dict(found.edges.set_index(["writer", "reader"])["effect"])

    def importance(self, ids: Ids) -> Tensor:
        return self._scores([ids], "integrated_gradients")[0]
