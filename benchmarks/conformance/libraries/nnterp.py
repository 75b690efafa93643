"""nnterp, which gives nnsight's modules the same names in all models."""

from typing import Any

import torch
from nnterp import StandardizedTransformer
from torch import Tensor

from benchmarks.conformance.libraries import Ids, Library, Site, Subject


class Nnterp(Library):
    """Inputs and outputs of layers, and attention's probabilities.

    Its other accessors are the modules' own outputs, which it does not call what is added.
    """

    packages = ("nnterp", "nnsight")
    sites = ("resid_pre", "resid_post")
    claims = ("stream", "weights", "patch")

    def __init__(self, subject: Subject) -> None:
        super().__init__(subject)
        self._model = self._named(enable_attention_probs=False)

    def _named(self, **options: bool) -> Any:
        words = {"tokenizer": self.subject.tokenizer}
        return StandardizedTransformer(self.subject.hf, **words, **options)

    def _accessor(self, site: str) -> Any:
        return self._model.layers_input if site == "resid_pre" else self._model.layers_output

    def activation(self, ids: Ids, site: Site) -> Tensor:
        values = self._accessor(site.name)
        with torch.no_grad(), self._model.trace({"input_ids": torch.tensor([ids])}):
            found = values[site.layer].save()
        return found.reshape(-1, found.shape[-1])

    def weights(self, ids: Ids, layer: int) -> Tensor:
        self.subject.hf.set_attn_implementation("eager")
        model = self._named(enable_attention_probs=True)
        with torch.no_grad(), model.trace({"input_ids": torch.tensor([ids])}):
            found = model.attention_probabilities[layer].save()
        return found[0]

    def patched(self, base: Ids, other: Ids, site: Site, position: int) -> float:
        vector, values = self.activation(other, site)[position], self._accessor(site.name)
        with torch.no_grad(), self._model.trace({"input_ids": torch.tensor([base])}):
            tensor = values[site.layer].clone()
            tensor[0, position] = vector
            values[site.layer] = tensor
            logits = self._model.output.logits.save()
        return float(self.subject.metric(logits))
