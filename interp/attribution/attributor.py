"""Attribution of batches: shared passes run once, followed by each method's own passes."""

from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import ExitStack, contextmanager
from functools import partial
from importlib import import_module
from itertools import count
from typing import Any, get_args

import torch
from torch import Tensor
from torch.nn import functional

from interp.attribution.method import (
    ATTENTION,
    DIFFERENTIATED,
    OPEN,
    Attribution,
    Captured,
    Heads,
    Need,
    OwnPasses,
    SharedPass,
    TokenScores,
)
from interp.attribution.registry import ATTRIBUTION, find_method
from interp.attribution.targets import attributed_tokens, objective
from interp.choices import AnswerReading
from interp.console import begin_part, passed
from interp.errors import UserError, described, one_line
from interp.models.attention_rows import answer_attention
from interp.models.backward_rules import PLAIN, BackwardRules, backward_rules, open_attention
from interp.models.model import Model
from interp.models.precision import wide
from interp.models.sites import View, layer_count, locate, watched
from interp.reading.budget import GPU_BATCH_TOKENS, GPU_GRADIENT_TOKENS, token_budget
from interp.reading.readers import reader_of
from interp.reading.tokens import Batch
from interp.scoring.answer_tokens import AnswerTokenizer
from interp.scoring.answers import Predictions, read_prompts


class Attributor:
    """One or more methods, by their labels, for one model and target.

    Raises:
        UserError: a method is unknown or does not support this model or its weights, or the budget
            is less than one token.
    """

    def __init__(
        self,
        model: Model,
        *,
        methods: Sequence[str],
        target: str,
        answers: AnswerReading = "first",
        batch_tokens: int | None,
    ) -> None:
        for name in methods:
            if find_method(name).differentiates:
                model.check_differentiable(f"the method {name}")
        built = {name: build(name, model) for name in methods}
        for name, method in built.items():
            if isinstance(method, SharedPass) and not method.needs.isdisjoint(ATTENTION):
                model.check_whole(f"the method {name}")
        self._model = model
        self._methods = tuple(built)
        self._target = target
        self._answer_tokens = AnswerTokenizer(model, answers)
        self._own = {n: method for n, method in built.items() if isinstance(method, OwnPasses)}
        self._passes = _passes({n: m for n, m in built.items() if isinstance(m, SharedPass)})
        backward = self._own or any(needs & DIFFERENTIATED for _, needs, _ in self._passes)
        self.budget = token_budget(
            model, batch_tokens, on_gpu=GPU_GRADIENT_TOKENS if backward else GPU_BATCH_TOKENS
        )
        """The token budget of a batch, and of each pass that a method runs on its own."""

    def __call__(self, batch: Batch) -> tuple[Predictions, list[dict[str, Attribution]]]:
        """The batch's answers, and for each prompt its scores by method name."""
        scores: dict[str, Sequence[Attribution]] = {}
        predictions: list[Predictions] = []
        parts = len(self._passes) + len(self._own) * len(batch.prompts)
        part = count()
        for rules, needs, methods in self._passes:
            begin_part(next(part), parts)
            captured = shared_pass(
                self._model,
                batch,
                self._answer_tokens,
                needs=needs,
                target=self._target,
                rules=rules,
            )
            predictions.append(captured.predictions)
            for name, method in methods.items():
                scores[name] = TokenScores.of(method.scores(captured), batch)
            passed(1.0)
        if self._own:
            from interp.attribution.explained import ExplainedPrompt

            tokens = attributed_tokens(self._target, batch, predictions[0])
            explained = [
                ExplainedPrompt(self._model, prompt, answers, attributed=chosen, budget=self.budget)
                for prompt, answers, chosen in zip(
                    batch.prompts, predictions[0].answers, tokens, strict=True
                )
            ]
            with self._model.measuring(), torch.enable_grad():
                for name, own_passes in self._own.items():
                    alone: list[Attribution] = []
                    for prompt in explained:
                        begin_part(next(part), parts)
                        alone.append(own_passes.attribute(prompt))
                        passed(1.0)
                    scores[name] = alone
        return predictions[0], [
            {name: scores[name][index] for name in self._methods}
            for index in range(len(batch.prompts))
        ]


def shared_pass(
    model: Model,
    batch: Batch,
    answer_tokens: AnswerTokenizer,
    *,
    needs: Set[Need],
    target: str,
    rules: BackwardRules = PLAIN,
) -> Captured:
    """Run the passes of a batch, with `rules` for the backward pass, and keep the required tensors.

    A prompt's target depends only on its own embeddings, so one backward pass from the sum of the
    targets serves the whole batch. If `donor_products` is the only need, the leading columns in
    which no prompt differs from its donor are run without a gradient, and only once for prompts
    with the same beginning. Whole answers are read after the pass, from which alone tensors are
    kept; the gradient also goes back through them.
    """
    differentiated = not needs.isdisjoint(DIFFERENTIATED)
    donors = None
    if "donor_products" in needs:
        from interp.attribution.counterfactual import counterfactual_ids, shared_start

        donors = counterfactual_ids(model, batch)
    answers = [answer_tokens(prompt) for prompt in batch.prompts]
    with model.measuring(), torch.set_grad_enabled(differentiated), backward_rules(model, rules):
        embeddings = reader_of(model).embed(batch.token_ids)
        start, past = 0, None
        if donors is not None and needs == {"donor_products"}:
            follows = any(tokens.ways for tokens in answers)
            start, past = shared_start(model, batch, donors, kept=follows)
        read = embeddings[:, start:].detach().requires_grad_(differentiated)
        with ExitStack() as stack:
            rows: list[Tensor] = []
            maps: list[Tensor] = []
            heads: list[Heads] = []
            if "attention_rows" in needs:
                rows = stack.enter_context(answer_attention(model))
            if needs & OPEN:
                stack.enter_context(_opened(model, needs, maps, heads))
            prompt_pass = read_prompts(model, batch, answers, embeddings=read, past=past)
        predictions = prompt_pass.predictions()
        gradient = products = None
        if differentiated:
            attributed = objective(target, batch, predictions)
            (read_gradient,) = torch.autograd.grad(attributed.sum(), read)
            gradient = functional.pad(read_gradient, (0, 0, start, 0))
        if donors is not None and gradient is not None:
            differences = wide(embeddings) - wide(reader_of(model).embed(donors))
            products = (differences * wide(gradient)).sum(-1)
    kept = gradient if "input_gradient" in needs else None
    return Captured(batch, predictions.detached(), embeddings, kept, rows, maps, heads, products)


@contextmanager
def _opened(
    model: Model, needs: Set[Need], maps: list[Tensor], heads: list[Heads]
) -> Iterator[None]:
    """Collect explicit attention from passes within the block, in `maps` and `heads`."""
    values: list[Tensor] = []

    def see_values(view: View, tensor: Tensor) -> None:
        values.append(view(tensor.detach()))

    def see_weights(weights: Tensor) -> None:
        weights = weights.detach()
        if "attention_maps" in needs:
            maps.append(weights.mean(1))
        if "heads" in needs:
            heads.append(Heads(weights[:, :, -1], values.pop()))

    with ExitStack() as stack:
        stack.enter_context(open_attention(model))
        for layer in range(layer_count(model)):
            place = locate(model, "v", layer)
            stack.enter_context(watched([place], partial(see_values, place.view)))
            stack.enter_context(watched([locate(model, "pattern", layer)], see_weights))
        yield


_Pass = tuple[BackwardRules, frozenset[Need], Mapping[str, SharedPass]]
"""The rules of a forward pass that methods share, all tensors that these need, and the methods."""


def _passes(methods: Mapping[str, SharedPass]) -> list[_Pass]:
    """Group the methods by pass; the pass that leaves the model unchanged comes first, if any."""
    alike: dict[tuple[BackwardRules, bool], dict[str, SharedPass]] = {}
    for name, method in methods.items():
        # Attention that computes its weights explicitly rounds differently from the model's own, so
        # it is used only for methods that need the weights.
        rules: BackwardRules = getattr(method, "rules", PLAIN)
        alike.setdefault((rules, bool(method.needs & OPEN)), {})[name] = method
    passes: list[_Pass] = []
    for key in sorted(alike, key=lambda key: key != (PLAIN, False)):
        needs = frozenset[Need]().union(*(method.needs for method in alike[key].values()))
        passes.append((key[0], needs, alike[key]))
    return passes or [(PLAIN, frozenset(), {})]


def build(label: str, model: Model | None) -> SharedPass | OwnPasses:
    """A method with its label's options; without a model, it reads only values of coalitions."""
    name, options = ATTRIBUTION.parsed(label)
    place = find_method(name).implementation
    module, _, attribute = place.partition(":")
    try:
        implementation = getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise UserError(
            f"the method {name!r} cannot be loaded from {place} ({one_line(str(error), 300)}); "
            "reinstall or fix that package"
        ) from error
    built = implementation(model, **dict(options))
    if not isinstance(built, SharedPass | OwnPasses):
        raise UserError(
            f"the method {name!r} is implemented by a {type(built).__name__}; expected a "
            "SharedPass or an OwnPasses of interp.attribution.method"
        )
    needs: Any = getattr(built, "needs", frozenset())
    if not isinstance(needs, Set) or not needs <= set(get_args(Need)):
        raise UserError(
            f"the method {name!r} has the needs {described(needs)}; expected a frozenset of some "
            f"of {', '.join(get_args(Need))}"
        )
    return built
