"""Speed of evaluation with shared prefixes, compared with plain batches.

    python -m benchmarks.evaluate

Everything runs in one process, on one CPU thread, with the same model and prompts (the ten
phrasings of both sides of some pairs) and only the logits at the last position. The time from
tokenized prompts to the rows of the answers table is measured in plain batches with several
budgets, and as `interp.evaluate` does it. All of these are timed in alternation, and medians are
reported. The bound on the speedup is the number of the prompts' tokens divided by the number that
remain if shared beginnings are read once.
"""

import argparse
from collections.abc import Callable, Iterable, Sequence
from statistics import median

import torch

import interp
from benchmarks.side_by_side import lines, machine, random_llama, timed, tokens_once
from interp.measurements.specs import Evaluate
from interp.measuring.core import Measurement, bind
from interp.reading.budget import CPU_BATCH_TOKENS
from interp.reading.tokens import Batch, TokenizedPrompt, batches, tokenize
from interp.tables import Row
from interp_experiments.rulebreakers.instances import generate
from interp_experiments.rulebreakers.prompts import prompt_set

HIDDEN, LAYERS = 256, 4
INSTANCES = 48
PLAIN_BUDGETS = (1, 512, 1024, CPU_BATCH_TOKENS)
"""Tokens per batch: first a plain loop over prompts, last the default, not always the fastest."""
REPEATS = 7


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    torch.set_num_threads(1)
    print(machine())
    found = compare(random_llama(HIDDEN, LAYERS), instances=INSTANCES, repeats=REPEATS)
    print(lines(f"hidden {HIDDEN}, {LAYERS} layers", found))


def compare(model: interp.Model, *, instances: int, repeats: int) -> dict[str, float]:
    """Measure plain batches and shared prefixes on this many rulebreakers and counterparts."""
    prompts = tokenize(model, prompt_set(generate(0)[:instances], seed=0, description={}))
    measurement = bind(Evaluate(), model)
    ways: dict[object, Callable[[], list[Row]]] = {
        budget: plain(measurement, prompts, budget) for budget in PLAIN_BUDGETS
    }
    ways["shared"] = lambda: rows(measurement, measurement.batches(prompts))
    answers = {way: run() for way, run in ways.items()}
    seconds = timed(ways, repeats, median)
    fastest = min(seconds[budget] for budget in PLAIN_BUDGETS)
    ratio = fastest / seconds["shared"]
    tokens = sum(map(len, prompts))
    bound = tokens / tokens_once(prompt.token_ids for prompt in prompts)
    return {
        "prompts": len(prompts),
        "tokens per prompt": tokens / len(prompts),
        **{
            f"prompts/s, plain, {budget:,} tokens per batch": len(prompts) / seconds[budget]
            for budget in PLAIN_BUDGETS
        },
        "prompts/s, shared prefixes": len(prompts) / seconds["shared"],
        "ratio to a plain loop": seconds[1] / seconds["shared"],
        "ratio to the default budget": seconds[CPU_BATCH_TOKENS] / seconds["shared"],
        "ratio to the fastest plain batches": ratio,
        "bound by token counts": bound,
        "share of the bound": ratio / bound,
        "largest difference of a probability": max(
            abs(one["probability"] - other["probability"])
            for one, other in zip(answers["shared"], answers[CPU_BATCH_TOKENS], strict=True)
        ),
    }


def plain(
    measurement: Measurement, prompts: Sequence[TokenizedPrompt], budget: int
) -> Callable[[], list[Row]]:
    return lambda: rows(measurement, batches(measurement.model, prompts, batch_tokens=budget))


def rows(measurement: Measurement, found: Iterable[tuple[list[int], Batch]]) -> list[Row]:
    """The probabilities of all options, in the order of the prompts."""
    options: dict[int, list[Row]] = {}
    for indices, batch in found:
        measured = measurement.measure_batch(batch)
        options.update(
            zip(indices, (tables["option_probabilities"] for tables in measured), strict=True)
        )
    return [row for index in range(len(options)) for row in options[index]]


if __name__ == "__main__":
    main()
