"""nnsight, whose users name the modules of the model."""

from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from nnsight import save
from nnsight.modeling.transformers import TransformersModel
from torch import Tensor

from benchmarks.conformance.libraries import Ids, Library, Site, Subject


class Adapter(Library):
    """One trace per call."""

    packages: ClassVar[tuple[str, ...]] = ("nnsight",)

    def __init__(self, subject: Subject) -> None:
        super().__init__(subject)
        self._model = self._wrapped()

    def _wrapped(self) -> Any:
        return TransformersModel(self.subject.hf, tokenizer=self.subject.tokenizer)

    def _get(self, site: Site) -> Any:
        return getattr(self._model.get(site.path), site.end)

    def _set(self, site: Site, value: Any) -> None:
        setattr(self._model.get(site.path), site.end, value)

    def activation(self, ids: Ids, site: Site) -> Tensor:
        with torch.no_grad(), self._model.trace({"input_ids": torch.tensor([ids])}):
            value = self._get(site)
            found = save(value[0] if isinstance(value, tuple) else value)
        return found.reshape(-1, found.shape[-1])

    def patched(self, base: Ids, other: Ids, site: Site, position: int) -> float:
        vector = self.activation(other, site)[position]
        with torch.no_grad(), self._model.trace({"input_ids": torch.tensor([base])}):
            value = self._get(site)
            tensor = (value[0] if isinstance(value, tuple) else value).clone()
            tensor.view(-1, tensor.shape[-1])[position] = vector
            self._set(site, (tensor, *value[1:]) if isinstance(value, tuple) else tensor)
            logits = save(self._model.output.logits)
        return float(self.subject.metric(logits))

    def gradients(self, given: Sequence[Ids]) -> list[Tensor]:
        table = self.subject.hf.get_input_embeddings()
        path = next(name for name, own in self.subject.hf.named_modules() if own is table)
        module, metric = self._model.get(path), self.subject.metric
        with self._model.trace({"input_ids": torch.tensor(given)}):
            embedded = module.output
            with metric(self._model.output.logits).sum().backward():
                found = save(embedded.grad)
        return list(found)

    def together(self, given: Sequence[Ids]) -> list[Tensor]:
        with torch.no_grad(), self._model.trace() as tracer:
            found = save([])
            for ids in given:
                with tracer.invoke({"input_ids": torch.tensor([ids])}):
                    found.append(self._model.output.logits[0, -1])
        return found
