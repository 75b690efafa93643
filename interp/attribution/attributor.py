"""Attribution of batches: the shared passes once, then each method's own."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module

import torch

from interp.attribution.explained import ExplainedPrompt
from interp.attribution.method import (
    OPEN,
    Attribution,
    Captured,
    Need,
    OwnPasses,
    SharedPass,
    TokenScores,
    rules_of,
    shared_pass,
)
from interp.attribution.registry import check_methods, find_method
from interp.attribution.targets import attributed_tokens
from interp.errors import UserError, one_line
from interp.models.backward_rules import PLAIN, BackwardRules
from interp.models.model import Model
from interp.reading.budget import GPU_BATCH_TOKENS, GPU_GRADIENT_TOKENS, token_budget
from interp.reading.tokens import Batch
from interp.scoring.answer_tokens import AnswerTokenizer
from interp.scoring.answers import Predictions


class Attributor:
    """Some methods for one model and target.

    Raises:
        UserError: an unknown method, or one that does not take this model; a budget of less than
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
        shared = {n: method for n, method in built.items() if isinstance(method, SharedPass)}
        self._own = {n: method for n, method in built.items() if isinstance(method, OwnPasses)}
        self._passes = list(_passes(shared))
        backward = bool(self._own) or any("input_gradient" in own.needs for own in self._passes)
        self.budget = token_budget(
            model, batch_tokens, on_gpu=GPU_GRADIENT_TOKENS if backward else GPU_BATCH_TOKENS
        )
        """For a batch, and for every pass that a method runs by itself."""

    def __call__(self, batch: Batch) -> tuple[Predictions, list[dict[str, Attribution]]]:
        """Answers, and for each prompt the scores by method, in the order of their names."""
        scores: dict[str, Sequence[Attribution]] = {}
        captured = self._run(self._passes[0], batch, scores)
        for own in self._passes[1:]:
            self._run(own, batch, scores)
        predictions = captured.predictions
        if self._own:
            scores |= self._by_own_passes(batch, predictions)
        return predictions, [
            {name: scores[name][index] for name in self._methods}
            for index in range(len(batch.prompts))
        ]

    def explained(self, batch: Batch, predictions: Predictions) -> Iterator[ExplainedPrompt]:
        """Each prompt with the scalar that is attributed, for passes beyond those of a batch."""
        found = attributed_tokens(self._target, batch, predictions)
        for prompt, attributed in zip(batch.prompts, found, strict=True):
            yield ExplainedPrompt(
                self._model,
                prompt,
                self._answer_tokens,
                attributed=attributed,
                budget=self.budget,
            )

    def _run(
        self, own: "_Pass", batch: Batch, scores: dict[str, Sequence[Attribution]]
    ) -> Captured:
        """Run a pass, and add the scores of its methods."""
        captured = shared_pass(
            self._model,
            batch,
            self._answer_tokens,
            needs=own.needs,
            target=self._target,
            rules=own.rules,
        )
        for name, method in own.methods.items():
            scores[name] = TokenScores.of(method.scores(captured), batch)
        return captured

    def _by_own_passes(
        self, batch: Batch, predictions: Predictions
    ) -> dict[str, Sequence[Attribution]]:
        """The scores by each method that runs its own passes, prompt by prompt."""
        explained = list(self.explained(batch, predictions))
        with self._model.measuring(), torch.enable_grad():
            return {
                name: [method.attribute(prompt) for prompt in explained]
                for name, method in self._own.items()
            }


@dataclass(frozen=True, slots=True)
class _Pass:
    """A forward pass, and a backward pass where it is needed, that methods share."""

    rules: BackwardRules
    methods: Mapping[str, SharedPass]

    @property
    def needs(self) -> frozenset[Need]:
        """What its methods need."""
        return frozenset().union(*(method.needs for method in self.methods.values()))


def _passes(methods: Mapping[str, SharedPass]) -> list[_Pass]:
    """At least one pass; the model's own gradient, where methods need it, comes first."""
    alike: dict[tuple[BackwardRules, bool], dict[str, SharedPass]] = {}
    for name, method in methods.items():
        # Open attention rounds differently, so only methods that read it use it.
        alike.setdefault((rules_of(method), bool(method.needs & OPEN)), {})[name] = method
    order = sorted(alike, key=lambda key: key != _OWN)
    return [_Pass(key[0], alike[key]) for key in order] or [_Pass(PLAIN, {})]


_OWN = (PLAIN, False)
"""The model's own gradient and attention."""


def _build(name: str, model: Model) -> SharedPass | OwnPasses:
    """A method's implementation for a model."""
    place = find_method(name).implementation
    module, _, attribute = place.partition(":")
    try:
        implementation = getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise UserError(
            f"the method {name!r} cannot be loaded from {place} ({one_line(str(error), 300)}); "
            "reinstall or fix the package that has it"
        ) from error
    built = implementation(model)
    if not isinstance(built, SharedPass | OwnPasses):
        raise UserError(
            f"the method {name!r} is implemented by a {type(built).__name__}; expected a "
            "SharedPass or an OwnPasses of interp.attribution.method"
        )
    return built
