"""Interpreto's attributions of one logit."""

from collections.abc import Sequence
from typing import Any

import beartype  # noqa: F401  Before nnsight, which adds to every object what beartype meets.
import torch
from torch import Tensor

from benchmarks.conformance.libraries import Ids, Library
from benchmarks.conformance.types import ENCODER

from interpreto import Granularity, IntegratedGradients, Occlusion, Saliency  # isort: skip


class Adapter(Library):
    """Texts and target words; a score is a mean over the embedding's entries."""

    packages = ("interpreto", "nnsight")
    one_column = True
    reduced = "mean"

    def _explained(self, given: Sequence[Ids], method: Any, **options: Any) -> list[Tensor]:
        words, column = self.subject.tokenizer, self.subject.options[0]
        options |= {"batch_size": 4, "granularity": Granularity.ALL_TOKENS}
        made = method(self.subject.hf, words, **options)
        texts = [words.decode(ids) for ids in given]
        targets = torch.tensor([column] * len(given))
        if self.subject.type != ENCODER:
            targets = [words.decode([own]) for own in targets]
        found = made.explain(texts, targets=targets)
        rows = [own.attributions.reshape(-1, own.attributions.shape[-1])[0] for own in found]
        return [self._placed(*own) for own in zip(given, rows, strict=True)]

    def _placed(self, ids: Ids, row: Tensor) -> Tensor:
        """A score for each token: special ones have none, and behind them is the target's."""
        special = self.subject.tokenizer.all_special_ids
        plain = [place for place, own in enumerate(ids) if own not in special][: len(row)]
        return torch.zeros(len(ids)).index_copy(0, torch.tensor(plain), row.detach()[: len(plain)])

    def gradients(self, given: Sequence[Ids]) -> list[Tensor]:
        return self._explained(given, Saliency, input_x_gradient=False)

    def integrated(self, ids: Ids, other: Ids) -> tuple[Tensor, Ids, int]:
        table = self.subject.hf.get_input_embeddings()
        explained = [self.subject.options[0]] * (self.subject.type != ENCODER)
        baseline = table(torch.tensor([*other, *explained])).detach()
        scores = self._explained([ids], IntegratedGradients, baseline=baseline)
        return scores[0] * table.weight.shape[1], other, 10

    def importance(self, ids: Ids) -> Tensor:
        return self._explained([ids], Occlusion)[0]
