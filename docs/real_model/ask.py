"""The runs behind docs/real_model.md: python docs/real_model/ask.py STEP FILE [FOLDER].

FILE is the model's GGUF file, and FOLDER (runs/qwen) gets one folder of results for each step. A
step that was stopped goes on where it was when it is started again.
"""

import sys
from dataclasses import replace
from pathlib import Path

import interp


def pairs(number: int) -> interp.PromptSet:
    """Pairs of RULEBREAKERS from as many units of the design: all phrasings, rules and verbs.

    With its own `turns`, the design draws at most 24 entity pairs for 480 pairs; with 40, nearly
    every pair has entities of its own. The first pairs of a larger number are those of a smaller.
    """
    return replace(interp.load_prompts("rulebreakers", limit="all"), turns=40).spread(number)


def new_pairs(number: int) -> interp.PromptSet:
    """Those of the first pairs whose second entity is in none of the 80 that were asked first."""
    asked = {pair.factors["entity_b"] for pair in pairs(80)}
    return pairs(number).filter(lambda pair: pair.factors["entity_b"] not in asked)


def cities(number: int) -> interp.PromptSet:
    """The facts about the cities of these pairs, each asked in several wordings."""
    asked = {pair.factors["entity_b"] for pair in pairs(number)}
    return interp.load_facts("rulebreakers").filter(
        lambda fact: (
            fact.factors["entity_group"] == "geographical" and fact.factors["entity_b"] in asked
        )
    )


STEPS = {
    "answers": lambda: (interp.Evaluate(content_free=True, without_premises=True), pairs(80)),
    "segments": lambda: (interp.Evaluate(without_segments=True), pairs(80)),
    "confirmation": lambda: (interp.Evaluate(without_premises=True), new_pairs(240)),
    "familiarity": lambda: (interp.measurement("probe-familiarity"), cities(80)),
    "attention": lambda: (interp.Attribute(methods=("attention",)), pairs(40)),
    "patching": lambda: (interp.Patch(layers=(4, 12, 20), granularity="segment"), pairs(12)),
    "gradient": lambda: (interp.Attribute(methods=("input_gradient",)), pairs(40)),
    "effects": lambda: (interp.Effects(donors=2), pairs(12)),
    "edges": lambda: (interp.Edges(), pairs(24)),
    "shots": lambda: (
        interp.Evaluate(without_premises=True),
        interp.with_messages(pairs(80), shots=4),
    ),
    "logical-forms": lambda: (
        interp.Evaluate(without_premises=True),
        interp.load_prompts("logical-forms", limit=120),
    ),
    "robustlr": lambda: (interp.Evaluate(), interp.load_prompts("robustlr", limit=24)),
    "rulebench": lambda: (interp.Evaluate(), interp.load_prompts("rulebench-versions", limit=16)),
}


def main(step: str, file: str, folder: str = "runs/qwen") -> None:
    """Measures one step and writes its page."""
    measurement, prompts = STEPS[step]()
    result = interp.run(
        measurement, models=f"Qwen-1.5B={file}", prompts=prompts, out=str(Path(folder) / step)
    )
    interp.write_page(result.report(), str(Path(folder) / f"{step}.html"))


if __name__ == "__main__":
    main(*sys.argv[1:])
