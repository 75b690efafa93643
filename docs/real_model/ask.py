"""The runs behind docs/real_model.md: python docs/real_model/ask.py STEP FILE [FOLDER].

FILE is the model's GGUF file, and FOLDER (runs/qwen) gets one folder of results for each step. A
step that was stopped goes on where it was when it is started again.
"""

import sys
from dataclasses import replace
from pathlib import Path

import interp
from interp_probes import api as probes


def pairs(number: int) -> interp.PromptSet:
    """Pairs of RULEBREAKERS, one from each unit of the design: ten phrasings, both rules, all verbs.

    With its own `turns`, the design draws at most 24 entity pairs for 480 pairs; with 40, nearly
    every pair has entities of its own. The first pairs of a larger number are those of a smaller.
    """
    return replace(interp.load_prompts("rulebreakers", limit="all"), turns=40).spread(number)


STEPS = {
    "answers": lambda: (interp.Evaluate(content_free=True, without_premises=True), pairs(80)),
    "attribution": lambda: (interp.Attribute(), pairs(40)),
    "patching": lambda: (interp.Patch(layers=(4, 12, 20), granularity="segment"), pairs(12)),
    "effects": lambda: (interp.Effects(donors=2), pairs(12)),
}


def main(step: str, file: str, folder: str = "runs/qwen") -> None:
    """Measures one step and writes its page."""
    measurement, prompts = STEPS[step]()
    result = interp.run(
        measurement, models=f"Qwen-1.5B={file}", prompts=prompts, out=str(Path(folder) / step)
    )
    interp.write_page(result, str(Path(folder) / f"{step}.html"))


if __name__ == "__main__":
    main(*sys.argv[1:])
