"""Attribution of batches by any methods: the shared passes once, then each method's own."""

from collections.abc import Iterator, Sequence
from importlib import import_module

import torch

from interp.attribution.explained import ExplainedPrompt
from interp.attribution.method import Attribution, OwnPasses, SharedPass, TokenScores
from interp.attribution.registry import check_methods, find_method
from interp.attribution.shared_pass import Need, shared_pass
from interp.attribution.targets import target_tokens
from interp.errors import UserError
from interp.models.model import Model
from interp.reading.budget import GPU_BATCH_TOKENS, GPU_GRADIENT_TOKENS, token_budget
from interp.reading.tokens import Batch
from interp.scoring.answer_tokens import AnswerTokenizer
from interp.scoring.answers import Predictions


class Attributor:
    """Some methods for one model and target.

    Raises:
        UserError: an unknown method, or one that the model is not made for; a budget of less than
            one token.
    """

    def __init__(
        self, model: Model, *, methods: Sequence[str], target: str, batch_tokens: int | None
    ) -> None:
        check_methods(methods)
        built = {name: _build(name, model) for name in methods}
        self._model = model
        self._methods = tuple(built)
        self._target = target
        self._answer_tokens = AnswerTokenizer(model)
        self._shared = {n: method for n, method in built.items() if isinstance(method, SharedPass)}
        self._own = {n: method for n, method in built.items() if isinstance(method, OwnPasses)}
        self._needs: frozenset[Need] = frozenset().union(
            *(method.needs for method in self._shared.values())
        )
        backward = bool(self._own) or "input_gradient" in self._needs
        self.budget = token_budget(
            model, batch_tokens, on_gpu=GPU_GRADIENT_TOKENS if backward else GPU_BATCH_TOKENS
        )
        """Of a batch, and of every pass that a method runs by itself."""

    def __call__(self, batch: Batch) -> tuple[Predictions, list[dict[str, Attribution]]]:
        """Answers, and what each method, in the order of their names, says of each prompt."""
        captured = shared_pass(
            self._model, batch, self._answer_tokens, needs=self._needs, target=self._target
        )
        scores: dict[str, Sequence[Attribution]] = {
            name: TokenScores.of(method.scores(captured), batch)
            for name, method in self._shared.items()
        }
        if self._own:
            scores |= self._by_own_passes(batch, captured.predictions)
        return captured.predictions, [
            {name: scores[name][index] for name in self._methods}
            for index in range(len(batch.prompts))
        ]

    def _by_own_passes(
        self, batch: Batch, predictions: Predictions
    ) -> dict[str, Sequence[Attribution]]:
        """The scores by each method that runs passes of its own, prompt by prompt."""
        explained = list(self._explained(batch, predictions))
        with self._model.measuring(), torch.enable_grad():
            return {
                name: [method.attribute(prompt) for prompt in explained]
                for name, method in self._own.items()
            }

    def _explained(self, batch: Batch, predictions: Predictions) -> Iterator[ExplainedPrompt]:
        tokens, others = target_tokens(self._target, batch, predictions)
        for index, prompt in enumerate(batch.prompts):
            yield ExplainedPrompt(
                self._model,
                prompt,
                self._answer_tokens,
                token=int(tokens[index]),
                other=None if others is None else int(others[index]),
                budget=self.budget,
            )


def _build(name: str, model: Model) -> SharedPass | OwnPasses:
    """A method's implementation for a model."""
    module, _, attribute = find_method(name).implementation.partition(":")
    built = getattr(import_module(module), attribute)(model)
    if not isinstance(built, SharedPass | OwnPasses):
        raise UserError(
            f"the method {name!r} is implemented by a {type(built).__name__}; expected a "
            "SharedPass or an OwnPasses of interp.attribution.method"
        )
    return built
