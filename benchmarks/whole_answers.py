"""Speed of whole answers, compared with first tokens, in evaluation and attribution.

    python -m benchmarks.whole_answers [--model NAME_OR_PATH] [--pairs N]

Each prompt of RULEBREAKERS gets two options of up to four tokens that begin with different tokens,
so that both ways of reading are possible. The same prompts are read by first tokens and as whole
answers in one process, on one CPU thread, in alternation; medians are reported, with their ratio.
Attribution is the input gradient of the difference between the options.
"""

import argparse
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from statistics import median

import torch

import interp
from benchmarks.side_by_side import lines, machine, random_llama, timed
from interp.choices import AnswerReading
from interp.measurements.specs import Attribute, Evaluate
from interp.measuring.core import bind
from interp.measuring.spec import Spec
from interp.prompts.answers import AnswerOption, Choice
from interp.prompts.prompt import Prompt
from interp.reading.tokens import tokenize
from interp.scoring.answer_tokens import AnswerTokenizer

HIDDEN, LAYERS = 256, 4
PAIRS = 24
REPEATS = 5
WORDS = (("Yes it does so", "Yes it is", "Yes"), ("No it does not", "No it is", "No"))
"""Candidates for the two options; the first that has at most `MOST` tokens is used."""
MOST = 4

READINGS: tuple[AnswerReading, ...] = ("first", "whole")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", help="a model to measure instead of a random one")
    parser.add_argument("--pairs", type=int, default=PAIRS)
    given = parser.parse_args()
    torch.set_num_threads(1)
    print(machine())
    model = (
        random_llama(HIDDEN, LAYERS)
        if given.model is None
        else interp.load_model(given.model, device="cpu")
    )
    print(lines(f"{model.name}", compare(model, pairs=given.pairs, repeats=REPEATS)))


def compare(model: interp.Model, *, pairs: int, repeats: int) -> dict[str, float]:
    """Prompts per second of both ways of reading, and the ratio of their times."""
    prompts = prompts_of(model, pairs)
    specs: dict[tuple[str, AnswerReading], Spec] = {}
    for reading in READINGS:
        specs["evaluate", reading] = Evaluate(answers=reading)
        specs["attribute", reading] = Attribute(
            answers=reading, methods=("input_gradient",), target="contrast"
        )
    ways: dict[tuple[str, AnswerReading], Callable[[], object]] = {
        key: partial(bind(spec, model), prompts) for key, spec in specs.items()
    }
    for run in ways.values():
        run()
    seconds = timed(ways, repeats, median)
    tokens = sum(len(own) for own in tokenize(model, prompts)) / len(prompts)
    answers = AnswerTokenizer(model, "whole")(tokenize(model, prompts[:1])[0])
    found = {
        "prompts": float(len(prompts)),
        "tokens per prompt": tokens,
        "tokens of the longest option": float(max(len(way.tokens) for way in answers.ways)),
    }
    for name in ("evaluate", "attribute"):
        for reading in READINGS:
            found[f"{name}, {reading}: prompts/s"] = len(prompts) / seconds[name, reading]
        found[f"{name}: time of whole / first"] = seconds[name, "whole"] / seconds[name, "first"]
    return found


def prompts_of(model: interp.Model, pairs: int) -> list[Prompt]:
    """Prompts whose two options have at most four tokens, if one of the candidates does."""
    prompts = interp.load_prompts(limit=pairs)
    chat = tokenize(model, prompts[:1])[0].chat
    written = AnswerTokenizer(model).written
    names = [
        min(texts, key=lambda text: (max(map(len, written(chat, text))) > MOST, texts.index(text)))
        for texts in WORDS
    ]
    options = tuple(AnswerOption(name, (name,)) for name in names)
    answer = Choice(options, names[0], (names[0], names[1]))
    return [replace(prompt, answer=answer) for prompt in prompts]


if __name__ == "__main__":
    main()
