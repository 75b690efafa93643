"""Captum, on the model as a function of the embeddings."""

from collections.abc import Sequence

import torch
from captum.attr import IntegratedGradients, LayerActivation, Saliency
from torch import Tensor

from benchmarks.conformance.libraries import Ids, Library, Reduced, Site


class Captum(Library):
    """Its users write the function that is explained, and name the layer's module."""

    packages = ("captum",)
    claims = ("stream", "added", "gradient", "complete", "batch", "planted")

    @property
    def _plain(self) -> dict[str, bool]:
        return {} if self.subject.encoder else {"use_cache": False}

    def _value(self, embeddings: Tensor) -> Tensor:
        return self.subject.metric(self.subject.hf(inputs_embeds=embeddings, **self._plain).logits)

    def _embedded(self, *given: Ids) -> Tensor:
        found: Tensor = self.subject.hf.get_input_embeddings()(torch.tensor(given))
        return found.detach().requires_grad_()

    def activation(self, ids: Ids, site: Site) -> Tensor:
        module = self.subject.hf.get_submodule(site.path)
        taken = LayerActivation(self._value, module)
        given = self._embedded(ids)
        found = taken.attribute(given, attribute_to_layer_input=site.name == "resid_pre")
        first = found[0] if isinstance(found, tuple) else found
        return first.reshape(-1, first.shape[-1])

    def gradient(self, ids: Ids) -> tuple[Tensor, Reduced]:
        return Saliency(self._value).attribute(self._embedded(ids), abs=False)[0], "entries"

    def integrated(self, ids: Ids, other: Ids) -> tuple[Tensor, Ids, int]:
        method, base = IntegratedGradients(self._value), self._embedded(other)
        return method.attribute(self._embedded(ids), base)[0].sum(-1), other, 50

    def together(self, given: Sequence[Ids]) -> list[Tensor]:
        same = [ids for ids in given if len(ids) == len(given[0])]
        return list(Saliency(self._value).attribute(self._embedded(*same)))

    def importance(self, ids: Ids) -> Tensor:
        mean = self.subject.hf.get_input_embeddings().weight.mean(0).detach()
        given = self._embedded(ids)
        method = IntegratedGradients(self._value)
        return method.attribute(given, mean.expand_as(given).clone())[0].sum(-1)
