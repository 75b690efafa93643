"""LXT's relevance by one backward pass."""

import sys

import torch
from lxt.efficient import monkey_patch
from torch import Tensor

from benchmarks.conformance.libraries import Ids, Subject, captum


class Adapter(captum.Adapter):
    """It changes the classes of a model's modules."""

    packages = ("lxt",)

    def __init__(self, subject: Subject) -> None:
        super().__init__(subject)
        monkey_patch(sys.modules[type(subject.hf).__module__])

    def importance(self, ids: Ids) -> Tensor:
        given = self._embedded(ids)
        (gradient,) = torch.autograd.grad(self._value(given), given)
        return (given * gradient)[0].sum(-1).detach()
