"""inseq, on texts that it tokenizes itself."""

from collections.abc import Sequence
from typing import Any

import inseq
import torch
from torch import Tensor

from benchmarks.conformance.libraries import Ids, Library, Subject
from benchmarks.conformance.types import ORGANISMS


class Adapter(Library):
    """The next word is forced to be the first option, and the metric is a step function."""

    packages = ("inseq", "captum")
    reduced = "sizes"  # Captum's default

    def __init__(self, subject: Subject) -> None:
        super().__init__(subject)
        self._model: Any = inseq.load_model(subject.hf, "saliency", tokenizer=subject.tokenizer)

    def _explained(self, given: Sequence[Ids], method: str) -> list[Tensor]:
        words, metric = self.subject.tokenizer, self.subject.metric
        texts = [words.decode(ids) for ids in given]
        first = words.decode([self.subject.options[0]])
        gap = "" if self.subject.type == ORGANISMS else " "  # the tiny models' words are apart
        forced, options = [text + gap + first for text in texts], {"show_progress": False}
        options["attributed_fn"] = lambda args: metric(args.forward_output.logits)
        found = self._model.attribute(texts, forced, method=method, **options)
        scores = [own.target_attributions.detach() for own in found.sequence_attributions]
        # Behind the prompt is the forced word, and before it may be a token that inseq adds.
        return [own[-len(ids) - 1 : -1, 0] for ids, own in zip(given, scores, strict=True)]

    def gradients(self, given: Sequence[Ids]) -> list[Tensor]:
        return self._explained(given, "saliency")

    def integrated(self, ids: Ids, other: Ids) -> tuple[Tensor, Ids, int]:
        scores = self._explained([ids], "integrated_gradients")[0]
        unknown = (self.subject.tokenizer.unk_token_id,) * len(ids)
        return scores.sum(-1), unknown, 50

    def importance(self, ids: Ids) -> Tensor:
        return torch.as_tensor(self._explained([ids], "integrated_gradients")[0]).sum(-1)
