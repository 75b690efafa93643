"""LXT's relevance by one backward pass."""

import sys

import torch
from lxt.efficient import monkey_patch
from torch import Tensor

from benchmarks.conformance.libraries import Ids, Library, Subject


class Lxt(Library):
    """It changes the classes of a model's modules."""

    packages = ("lxt",)
    claims = ("planted",)

    def __init__(self, subject: Subject) -> None:
        super().__init__(subject)
        monkey_patch(sys.modules[type(subject.hf).__module__])

    def importance(self, ids: Ids) -> Tensor:
        given = self.subject.hf.get_input_embeddings()(torch.tensor([ids]))
        given = given.detach().requires_grad_()
        self.subject.metric(self.subject.hf(inputs_embeds=given).logits).sum().backward()
        assert given.grad is not None
        return (given * given.grad)[0].sum(-1).detach()
