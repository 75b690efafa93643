"""Answers of prompts that begin alike, read once where they do, side by side with plain batches.

    python -m benchmarks.evaluate

In one process, on one CPU thread, same model, same prompts (the ten phrasings of both sides of some
pairs), last-position logits in both: seconds from tokenized prompts to the rows of the answers
table, by plain batches of several budgets and as `interp.evaluate` does it. The ways take turns;
the median counts. The bound is what the number of tokens allows: those of all prompts over those
that are left when whatever any prompts begin with is read once.
"""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import torch

from benchmarks.side_by_side import machine, random_llama, timed, tokens_once
from interp.measurements.core import Measurement, bind
from interp.measurements.specs import Evaluate
from interp.reading.budget import CPU_BATCH_TOKENS
from interp.reading.tokens import Batch, TokenizedPrompt, batches, tokenize
from interp.tables import Row
from interp_experiments.rulebreakers.instances import generate
from interp_experiments.rulebreakers.prompts import prompt_set

HIDDEN, LAYERS = 256, 4
INSTANCES = 48
PLAIN_BUDGETS = (512, 1024, CPU_BATCH_TOKENS)
"""The default is not the fastest for every model: the ratio is taken from the fastest of these."""
REPEATS = 7


def main() -> None:
    torch.set_num_threads(1)
    print(machine())
    print(table(compare(HIDDEN, LAYERS, instances=INSTANCES, repeats=REPEATS)))


@dataclass(frozen=True, slots=True)
class Comparison:
    """What plain batches and shared prefixes took."""

    hidden: int
    layers: int
    prompts: int
    tokens: int
    """Of all prompts."""
    tokens_left: int
    """When what a family shares is read once."""
    plain_seconds: Mapping[int, float]
    """By budget of tokens a batch."""
    shared_seconds: float
    difference: float
    """Largest difference of a probability."""

    @property
    def bound(self) -> float:
        """How many times as fast the number of tokens lets shared prefixes be."""
        return self.tokens / self.tokens_left


def compare(hidden: int, layers: int, *, instances: int, repeats: int) -> Comparison:
    """Measure both ways; `instances` counts rulebreakers and their counterparts."""
    model = random_llama(hidden, layers)
    prompts = tokenize(model, prompt_set(generate(0)[:instances], seed=0, description={}))
    measurement = bind(Evaluate(), model)
    ways: dict[object, Callable[[], list[Row]]] = {
        budget: plain(measurement, prompts, budget) for budget in PLAIN_BUDGETS
    }
    ways["shared"] = lambda: rows(measurement, measurement.batches(prompts))
    answers = {way: run() for way, run in ways.items()}
    seconds = timed(ways, repeats, median)
    tokens = sum(map(len, prompts))
    return Comparison(
        hidden=hidden,
        layers=layers,
        prompts=len(prompts),
        tokens=tokens,
        tokens_left=tokens_once(prompt.token_ids for prompt in prompts),
        plain_seconds={budget: seconds[budget] for budget in PLAIN_BUDGETS},
        shared_seconds=seconds["shared"],
        difference=largest_difference(answers["shared"], answers[CPU_BATCH_TOKENS]),
    )


def plain(
    measurement: Measurement, prompts: Sequence[TokenizedPrompt], budget: int
) -> Callable[[], list[Row]]:
    return lambda: rows(measurement, batches(measurement.model, prompts, batch_tokens=budget))


def rows(measurement: Measurement, found: Iterable[tuple[list[int], Batch]]) -> list[Row]:
    """Probabilities of all options, in the order of the prompts."""
    options: dict[int, list[Row]] = {}
    for indices, batch in found:
        measured = measurement.measure_batch(batch)
        options.update(
            zip(indices, (tables["option_probabilities"] for tables in measured), strict=True)
        )
    return [row for index in range(len(options)) for row in options[index]]


def largest_difference(some: Sequence[Row], others: Sequence[Row]) -> float:
    return max(
        abs(one["probability"] - other["probability"])
        for one, other in zip(some, others, strict=True)
    )


def table(found: Comparison) -> str:
    fastest = min(found.plain_seconds.values())
    ratio = fastest / found.shared_seconds
    lines = [
        f"hidden {found.hidden}, {found.layers} layers, {found.prompts} prompts "
        f"of {found.tokens / found.prompts:.0f} tokens",
        *(
            f"  plain, {budget:5,} tokens a batch  {found.prompts / seconds:9.1f} prompts/s"
            for budget, seconds in found.plain_seconds.items()
        ),
        f"  shared prefixes              {found.prompts / found.shared_seconds:9.1f} prompts/s",
        f"  ratio to the default budget  "
        f"{found.plain_seconds[CPU_BATCH_TOKENS] / found.shared_seconds:9.2f}",
        f"  ratio to the fastest plain   {ratio:9.2f}",
        f"  bound by token counts        {found.bound:9.2f}",
        f"  share of the bound           {ratio / found.bound:9.0%}",
        f"  largest difference           {found.difference:9.1e}",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
