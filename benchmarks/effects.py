"""Speed of segments' Shapley values, compared with captum, and the cost of backward rules.

    python -m benchmarks.effects

Everything runs in one process, on one CPU thread, on a random Llama:

  1. the Shapley values of three segments over eight donors, by captum's ShapleyValues, with prompts
     tokenized beforehand and read in plain batches, and by `interp effects`, tokenization included.
     Both run with the same token budgets, and the fastest budget of each is compared. The bound on
     the speedup is the number of tokens that captum reads divided by the number that remain if
     shared beginnings are read only once;
  2. input_gradient, input_x_gradient, frozen_norms and gim on the same prompts.

Everything is timed in alternation, and medians are reported.
"""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from statistics import median

import captum.attr
import numpy as np
import torch
from numpy.typing import NDArray

import interp
from benchmarks.side_by_side import lines, machine, random_llama, timed, tokens_once
from interp.attribution.games import Coalitions
from interp.measurements.effects.measure import option_logits
from interp.measurements.specs import Attribute, Effects
from interp.measuring.core import bind
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
    argparse.ArgumentParser(description=__doc__).parse_args()
    torch.set_num_threads(1)
    print(machine("captum"))
    model = random_llama(HIDDEN, LAYERS)
    prompts = prompts_of(PAIRS)
    title = f"Shapley values of three segments over eight donors, {len(prompts)} prompts"
    print(lines(title, compare(model, prompts, repeats=REPEATS)))
    print(lines("Time relative to input_gradient", backward(model, prompts, REPEATS)))


def prompts_of(pairs: int) -> list[Prompt]:
    """Both sides of some pairs, from categories with at least eight possible donors."""
    found = with_donors(interp.load_prompts(limit=4 * pairs), count=8)
    return [prompt for prompt in found if len(donors_of(prompt, "instance")) == 8][: 2 * pairs]


class Captums:
    """Shapley values of one prompt's segments by captum, over donors from other instances."""

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


def compare(model: interp.Model, prompts: Sequence[Prompt], *, repeats: int) -> dict[str, float]:
    """Measure captum and this toolkit."""
    captums = [Captums(model, prompt) for prompt in prompts]
    # captum uses donors of one kind only.
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
    fastest = {
        way: min(seconds[way, budget] for budget in BUDGETS) for way in ("captum", "effects")
    }
    return {
        **{
            f"prompts/s, {way}, {budget:,} tokens per batch": len(prompts) / seconds[way, budget]
            for way, budget in ways
        },
        "ratio": fastest["captum"] / fastest["effects"],
        "bound by token counts": sum(own.tokens for own in captums) / tokens_left(model, alone),
        "largest difference, in logits": float(
            np.abs(np.abs(ours.reshape(theirs.shape)) - np.abs(theirs)).max()
        ),
    }


def shapley_values(captums: Sequence[Captums], budget: int) -> list[NDArray[np.float64]]:
    return [own(budget) for own in captums]


def with_instances(prompt: Prompt) -> Prompt:
    """The prompt, with only those donors that come from other instances."""
    return replace(prompt, donors=donors_of(prompt, "instance"))


def tokens_left(model: interp.Model, prompts: Sequence[Prompt]) -> int:
    """Tokens of all coalitions' prompts, with shared beginnings counted once."""
    read: list[TokenizedPrompt] = []
    for prompt in prompts:
        game = Coalitions(prompt, donors_of(prompt, "instance"))
        read += tokenize(model, list({p.text: p for row in game.prompts for p in row}.values()))
    return tokens_once(prompt.token_ids for prompt in read)


def backward(model: interp.Model, prompts: Sequence[Prompt], repeats: int) -> dict[str, float]:
    """Time of each method with one backward pass, relative to that of input_gradient."""
    ways = {
        name: partial(bind(Attribute(methods=(name,), target="contrast"), model), prompts)
        for name in METHODS
    }
    for run in ways.values():
        run()
    seconds = timed(ways, 3 * repeats, median)
    return {name: taken / seconds["input_gradient"] for name, taken in seconds.items()}


if __name__ == "__main__":
    main()
