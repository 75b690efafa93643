"""Captum, on the model as a function of the embeddings."""

from collections.abc import Sequence

import torch
from captum.attr import IntegratedGradients, LayerActivation, Saliency
from torch import Tensor

from benchmarks.conformance.libraries import Ids, Library, Site


class Adapter(Library):
    """Its users write the function that is explained, and name the layer's module."""

    packages = ("captum",)

    def _value(self, embeddings: Tensor) -> Tensor:
        return self.subject.metric(
            self.subject.hf(inputs_embeds=embeddings, use_cache=False).logits
        )

    def _embedded(self, *given: Ids) -> Tensor:
        found: Tensor = self.subject.hf.get_input_embeddings()(torch.tensor(given))
        return found.detach().requires_grad_()

    def activation(self, ids: Ids, site: Site) -> Tensor:
        taken = LayerActivation(self._value, self.subject.hf.get_submodule(site.path))
        found = taken.attribute(self._embedded(ids), attribute_to_layer_input=site.end == "input")
        first = found[0] if isinstance(found, tuple) else found
        return first.reshape(-1, first.shape[-1])

    def gradients(self, given: Sequence[Ids]) -> list[Tensor]:
        same = [ids for ids in given if len(ids) == len(given[0])]
        return list(Saliency(self._value).attribute(self._embedded(*same), abs=False))

    def _summed(self, ids: Ids, baseline: Tensor) -> Tensor:
        return IntegratedGradients(self._value).attribute(self._embedded(ids), baseline)[0].sum(-1)

    def integrated(self, ids: Ids, other: Ids) -> tuple[Tensor, Ids, int]:
        return self._summed(ids, self._embedded(other)), other, 50

    def importance(self, ids: Ids) -> Tensor:
        mean = self.subject.hf.get_input_embeddings().weight.mean(0).detach()
        return self._summed(ids, mean.expand_as(self._embedded(ids)).clone())
