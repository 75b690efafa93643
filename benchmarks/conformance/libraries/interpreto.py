"""Interpreto's attributions of one logit."""

from collections.abc import Sequence
from typing import Any

import beartype  # noqa: F401  Before nnsight, which adds to every object what beartype meets.
import torch
from torch import Tensor

from benchmarks.conformance.libraries import Ids, Library, Reduced

from interpreto import Granularity, IntegratedGradients, Occlusion, Saliency  # isort: skip


class Interpreto(Library):
    """Texts and target words; a score is a mean over the embedding's entries."""

    packages = ("interpreto", "nnsight")
    one_column = True
    claims = ("gradient", "complete", "batch", "planted")

    def _explained(self, given: Sequence[Ids], method: Any, **options: Any) -> list[Tensor]:
        words, column = self.subject.tokenizer, self.subject.options[0]
        made = method(
            self.subject.hf, words, batch_size=4, granularity=Granularity.ALL_TOKENS, **options
        )
        texts = [words.decode(ids) for ids in given]
        if self.subject.encoder:
            found = made.explain(texts, targets=torch.tensor([column] * len(given)))
        else:
            found = made.explain(texts, targets=[words.decode([column])] * len(given))
        rows = [own.attributions.reshape(-1, own.attributions.shape[-1])[0] for own in found]
        assert all(len(row) >= len(ids) for row, ids in zip(rows, given, strict=True))
        return [row[: len(ids)].detach() for row, ids in zip(rows, given, strict=True)]

    def gradient(self, ids: Ids) -> tuple[Tensor, Reduced]:
        return self._explained([ids], Saliency, input_x_gradient=False)[0], "mean"

    def integrated(self, ids: Ids, other: Ids) -> tuple[Tensor, Ids, int]:
        table = self.subject.hf.get_input_embeddings()
        column = torch.tensor(
            [[*other, self.subject.options[0]][: len(ids) + (not self.subject.encoder)]]
        )
        scores = self._explained([ids], IntegratedGradients, baseline=table(column)[0].detach())
        return scores[0] * table.weight.shape[1], other, 10

    def together(self, given: Sequence[Ids]) -> list[Tensor]:
        return self._explained(given, Saliency)

    def importance(self, ids: Ids) -> Tensor:
        return self._explained([ids], Occlusion)[0]
