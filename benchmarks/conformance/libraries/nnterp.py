"""nnterp, which gives nnsight's modules the same names in all models."""

from typing import Any

import torch
from nnterp import StandardizedTransformer
from torch import Tensor

from benchmarks.conformance.libraries import Ids, Site, nnsight


class Adapter(nnsight.Adapter):
    """What it gives of attention and MLP it does not call what they add to the stream."""

    packages = ("nnterp", "nnsight")
    sites = ("resid_pre", "resid_post")

    def _wrapped(self, **options: Any) -> Any:
        hf, words = self.subject.hf, self.subject.tokenizer
        return StandardizedTransformer(hf, tokenizer=words, **options)

    def _get(self, site: Site) -> Any:
        return getattr(self._model, f"layers_{site.end}")[site.layer]

    def _set(self, site: Site, value: Any) -> None:
        getattr(self._model, f"layers_{site.end}")[site.layer] = value

    def weights(self, ids: Ids, layer: int) -> Tensor:
        self.subject.hf.set_attn_implementation("eager")
        model = self._wrapped(enable_attention_probs=True)
        with torch.no_grad(), model.trace({"input_ids": torch.tensor([ids])}):
            found = model.attention_probabilities[layer].save()
        return found[0]
