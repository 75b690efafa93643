"""Exact Shapley values of segments beside captum's, and backward rules beside the input gradient.

    python -m benchmarks.effects

In one process, on one CPU thread, on a random Llama:
  1. the Shapley values of three segments over eight donors, by captum's ShapleyValues (all of its
     perturbations at once, each a plain batch of the donors' prompts, tokenized beforehand)
     and by `interp effects`, texts and tokens included, each at the fastest of the same budgets of
     tokens a batch. The bound is what the number of tokens allows: those of the prompts that captum
     reads over those that are left when whatever any texts begin with is read once;
  2. input_gradient, input_x_gradient, frozen_norms and gim on the same prompts.
The ways take turns; the median counts.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import median

import captum.attr
import numpy as np
import torch
from numpy.typing import NDArray

import interp
from benchmarks.side_by_side import machine, random_llama, timed, tokens_once
from interp.attribution.coalitions import Coalitions
from interp.measurements.core import bind
from interp.measurements.effects import option_logits
from interp.measurements.specs import Attribute, Effects
from interp.prompts.mixing import donors_of, with_donors
from interp.prompts.prompt import Prompt
from interp.reading.tokens import TokenizedPrompt, batches, tokenize
from interp.scoring.answer_tokens import AnswerTokenizer
from interp.scoring.answers import predict

HIDDEN, LAYERS = 256, 4
PAIRS = 4
REPEATS = 3
BUDGETS = (512, 1024, 2048, 4096, 8192)
METHODS = ("input_gradient", "input_x_gradient", "frozen_norms", "gim")


def main() -> None:
    torch.set_num_threads(1)
    print(machine("captum"))
    model = random_llama(HIDDEN, LAYERS)
    prompts = prompts_of(PAIRS)
    print(table(compare(model, prompts, repeats=REPEATS), backward(model, prompts, REPEATS)))


def prompts_of(pairs: int) -> list[Prompt]:
    """Both sides of some pairs, with eight donors each, which small categories do not have."""
    found = with_donors(interp.load_prompts(limit=4 * pairs), count=8)
    return [prompt for prompt in found if len(donors_of(prompt, "instance")) == 8][: 2 * pairs]


@dataclass(frozen=True, slots=True)
class Comparison:
    """What captum's ShapleyValues and `interp effects` took."""

    prompts: int
    captum_seconds: Mapping[int, float]
    """By budget of tokens a batch."""
    seconds: Mapping[int, float]
    """The same of `interp effects`."""
    captum_tokens: int
    tokens_left: int
    difference: float
    """Largest difference of a Shapley value, in logits."""

    @property
    def ratio(self) -> float:
        """How many times as fast `interp effects` is."""
        return min(self.captum_seconds.values()) / min(self.seconds.values())

    @property
    def bound(self) -> float:
        """How many times as fast the number of tokens lets it be."""
        return self.captum_tokens / self.tokens_left


class Captums:
    """captum's ShapleyValues of one prompt's segments, over its donors from other instances."""

    def __init__(self, model: interp.Model, prompt: Prompt) -> None:
        self._model = model
        self._answer_tokens = AnswerTokenizer(model)
        self._contrast = prompt.answer.contrast
        game = Coalitions(prompt, donors_of(prompt, "instance"))
        self._tokenized = [tokenize(model, list(row)) for row in game.prompts]
        self._weights = 2 ** torch.arange(len(game.segments), dtype=torch.float32)
        self.tokens = 0

    def __call__(self, budget: int) -> NDArray[np.float64]:
        """The Shapley values, in logits."""
        self.tokens = 0
        whole = torch.ones(1, len(self._weights))
        with self._model.measuring(), torch.inference_mode():
            explained = captum.attr.ShapleyValues(lambda masks: self._values(masks, budget))
            values: NDArray[np.float64] = (
                explained.attribute(whole, perturbations_per_eval=64)[0].double().numpy()
            )
        return values

    def _values(self, masks: torch.Tensor, budget: int) -> torch.Tensor:
        coalitions = (masks @ self._weights).long().tolist()
        read = [donor[coalition] for coalition in coalitions for donor in self._tokenized]
        found = torch.zeros(len(read), dtype=torch.float64)
        positive, negative = self._contrast or ("", "")
        for indices, batch in batches(self._model, read, batch_tokens=budget):
            self.tokens += sum(len(prompt) for prompt in batch.prompts)
            logits = option_logits(predict(self._model, batch, self._answer_tokens))
            values = [own[positive] - own[negative] for own in logits]
            found[indices] = torch.tensor(values, dtype=torch.float64)
        return found.view(len(coalitions), -1).mean(1)


def compare(model: interp.Model, prompts: Sequence[Prompt], *, repeats: int) -> Comparison:
    """Measure both ways."""
    captums = [Captums(model, prompt) for prompt in prompts]
    # captum has donors of one kind.
    alone = [with_instances(prompt) for prompt in prompts]
    spec = Effects(donors=8)
    ways: dict[tuple[str, int], Callable[[], object]] = {}
    for budget in BUDGETS:
        ways["captum", budget] = partial(shapley_values, captums, budget)
        ways["effects", budget] = partial(bind(spec, model, batch_tokens=budget), alone)
    theirs = np.stack(shapley_values(captums, BUDGETS[0]))
    rows = bind(spec, model)(alone)["segment_effects"]
    ours = np.array([row["shapley"] for row in rows if row.get("other_segment") is None])
    seconds = timed(ways, repeats, median)
    return Comparison(
        prompts=len(prompts),
        captum_seconds={budget: seconds["captum", budget] for budget in BUDGETS},
        seconds={budget: seconds["effects", budget] for budget in BUDGETS},
        captum_tokens=sum(own.tokens for own in captums),
        tokens_left=tokens_left(model, alone),
        difference=float(np.abs(np.abs(ours.reshape(theirs.shape)) - np.abs(theirs)).max()),
    )


def shapley_values(captums: Sequence[Captums], budget: int) -> list[NDArray[np.float64]]:
    return [own(budget) for own in captums]


def with_instances(prompt: Prompt) -> Prompt:
    """The prompt with donors from other instances alone."""
    return replace(prompt, donors=donors_of(prompt, "instance"))


def tokens_left(model: interp.Model, prompts: Sequence[Prompt]) -> int:
    """Tokens of the texts, when whatever any of them begin with is read once."""
    read: list[TokenizedPrompt] = []
    for prompt in prompts:
        game = Coalitions(prompt, donors_of(prompt, "instance"))
        read += tokenize(model, list({p.text: p for row in game.prompts for p in row}.values()))
    return tokens_once(prompt.token_ids for prompt in read)


def backward(model: interp.Model, prompts: Sequence[Prompt], repeats: int) -> Mapping[str, float]:
    """Seconds of each method of one backward pass."""
    ways = {
        name: partial(bind(Attribute(methods=(name,), target="contrast"), model), prompts)
        for name in METHODS
    }
    for run in ways.values():
        run()
    return timed(ways, 3 * repeats, median)


def table(found: Comparison, methods: Mapping[str, float]) -> str:
    gradient = methods["input_gradient"]
    lines = [
        f"Shapley values of three segments over eight donors, {found.prompts} prompts",
        "Prompts a second, by tokens a batch",
        "  " + " " * 27 + "".join(f"{budget:8,}" for budget in BUDGETS),
        *(
            f"  {way:27}" + "".join(f"{found.prompts / seconds[b]:8.2f}" for b in BUDGETS)
            for way, seconds in (("captum", found.captum_seconds), ("effects", found.seconds))
        ),
        f"  ratio                        {found.ratio:8.2f}",
        f"  bound by token counts        {found.bound:8.2f}",
        f"  largest difference           {found.difference:8.1e} logits",
        "Seconds over those of input_gradient",
        *(f"  {name:27}  {seconds / gradient:8.2f}" for name, seconds in methods.items()),
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
