"""This toolkit, by its calls for notebooks."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import torch
from torch import Tensor

import interp
from benchmarks.conformance.libraries import Edges, Ids, Library, Reduced, Site, Subject
from interp.models.sites import attention_by, locate, recorded
from tests.zoo.check import refused


class Interp(Library):
    """One prompt, pair or batch per call."""

    packages = ("interp",)
    sites = ("resid_pre", "resid_mid", "resid_post", "attn_out", "mlp_out")
    by_module = False
    claims = (
        *("sums", "stream", "added", "weights", "patch"),
        *("gradient", "complete", "edges", "batch", "planted"),
    )

    def __init__(self, subject: Subject) -> None:
        super().__init__(subject)
        self._model = interp.Model(subject.type, subject.hf, subject.tokenizer)
        self._stored: dict[tuple[Ids, str], pd.DataFrame] = {}

    def activation(self, ids: Ids, site: Site) -> Tensor:
        if (ids, site.name) not in self._stored:
            all_tokens = {"sites": [site.name], "roles": ["all"], "tokens": "all"}
            found = interp.activations(self._model, [self.subject.prompts[ids]], **all_tokens)
            refused(found.table("answers"))
            self._stored[ids, site.name] = found.table("activation_vectors")
        rows = self._stored[ids, site.name]
        return torch.tensor(np.stack(rows.loc[rows["layer"] == site.layer, "vector"].tolist()))

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

    def gradient(self, ids: Ids) -> tuple[Tensor, Reduced]:
        return self._scores([ids], "input_gradient")[0], "norm"

    def integrated(self, ids: Ids, other: Ids) -> tuple[Tensor, Ids, int]:
        # What is explained of a class is the correct one.
        sign = -1 if self.subject.encoder and self.subject.prompts[ids].answer.gold == "No" else 1
        return sign * self._scores([ids], "integrated_gradients")[0], other, 20

    def edges(self, base: Ids, other: Ids) -> Edges:
        pair = [self.subject.prompts[own] for own in (other, base)]
        found = interp.edges(self._model, pair, methods=["gradient"], directions=["denoising"])
        refused(found.pairs)
        rows = found.edges[["writer", "reader", "effect"]].itertuples(index=False)
        return {(writer, reader): float(effect) for writer, reader, effect in rows}

    def together(self, given: Sequence[Ids]) -> list[Tensor]:
        return self._scores(given, "input_gradient")

    def importance(self, ids: Ids) -> Tensor:
        return self._scores([ids], "integrated_gradients")[0]
