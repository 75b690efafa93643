"""nnsight, whose users name the modules of the model."""

from collections.abc import Sequence
from typing import Any

import torch
from nnsight import save
from nnsight.modeling.transformers import TransformersModel
from torch import Tensor

from benchmarks.conformance.libraries import Ids, Library, Reduced, Site, Subject


class Nnsight(Library):
    """One trace per call."""

    packages = ("nnsight",)
    claims = ("stream", "added", "patch", "gradient", "batch")

    def __init__(self, subject: Subject) -> None:
        super().__init__(subject)
        self._model: Any = TransformersModel(subject.hf, tokenizer=subject.tokenizer)

    def activation(self, ids: Ids, site: Site) -> Tensor:
        module = self._model.get(site.path)
        with torch.no_grad(), self._model.trace({"input_ids": torch.tensor([ids])}):
            value = module.input if site.name == "resid_pre" else module.output
            found = save(value[0] if isinstance(value, tuple) else value)
        return found.reshape(-1, found.shape[-1])

    def patched(self, base: Ids, other: Ids, site: Site, position: int) -> float:
        vector = self.activation(other, site)[position]
        module = self._model.get(site.path)
        with torch.no_grad(), self._model.trace({"input_ids": torch.tensor([base])}):
            value = module.input if site.name == "resid_pre" else module.output
            tensor = (value[0] if isinstance(value, tuple) else value).clone()
            tensor.view(-1, tensor.shape[-1])[position] = vector
            if site.name == "resid_pre":
                module.input = tensor
            elif isinstance(value, tuple):
                module.output = (tensor, *value[1:])
            else:
                module.output = tensor
            logits = save(self._model.output.logits)
        return float(self.subject.metric(logits))

    def gradient(self, ids: Ids) -> tuple[Tensor, Reduced]:
        table = self.subject.hf.get_input_embeddings()
        path = next(name for name, own in self.subject.hf.named_modules() if own is table)
        module, metric = self._model.get(path), self.subject.metric
        with self._model.trace({"input_ids": torch.tensor([ids])}):
            embedded = module.output
            with metric(self._model.output.logits).sum().backward():
                found = save(embedded.grad)
        return found[0], "entries"

    def together(self, given: Sequence[Ids]) -> list[Tensor]:
        with torch.no_grad(), self._model.trace() as tracer:
            found = save([])
            for ids in given:
                with tracer.invoke({"input_ids": torch.tensor([ids])}):
                    found.append(self._model.output.logits[0, -1])
        return found
