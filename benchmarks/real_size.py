"""Speed on a real model, compared with transformers, inseq, captum and TransformerLens.

    python -m benchmarks.real_size MODEL [--parts PART ...] [--dtype NAME] [--repeats N] [...]

Each part runs in one process, on one CPU thread, with the same model and the same prompts of
RULEBREAKERS (`patch` and `edges`: one short pair, since TransformerLens makes a pass per cell):

  - evaluate: shared prefixes against plain batches, with the ten phrasings and a template that may
    begin with a system prompt;
  - attribute: a whole run of two methods against inseq, and against the bare passes;
  - effects: Shapley values of three segments over eight donors against captum;
  - patch: the exact grid of the residual stream against TransformerLens;
  - edges: all edges of the pair against one forward and backward pass over the clean prompt, and
    this process's peak memory. TransformerLens refuses edges of models with grouped queries.
"""

import argparse
import resource
from collections.abc import Callable

import pandas as pd
import torch

import interp
from benchmarks import attribution, edges, effects, evaluate, patching
from benchmarks.side_by_side import lines, machine, timed
from interp.circuits.graph import graph_of
from interp.patching.cells import PatchingPair
from interp.reading.tokens import tokenize
from interp.scoring.answer_tokens import AnswerTokenizer

PAIRS, REPEATS = 6, 3
ROWS = [
    ("true", "Yes", "Anne lives in Paris.", "Paris is in France.", "Is Anne in France?"),
    ("false", "No", "Anne lives in Rome.", "Paris is in France.", "Is Anne in France?"),
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", help="a name, folder or file")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=[*PARTS])
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--instances", type=int, default=4, help="of `evaluate`, in ten phrasings")
    given = parser.parse_args()
    torch.set_num_threads(1)
    print(machine("inseq", "captum", "transformer-lens"))
    model = interp.load_model(given.model, device="cpu", dtype=given.dtype)
    for part in given.parts:
        print(f"\n{part}\n{PARTS[part](model, given)}", flush=True)


def evaluated(model: interp.Model, given: argparse.Namespace) -> str:
    found = evaluate.compare(model, instances=given.instances, repeats=given.repeats)
    return lines(model.name, found)


def attributed(model: interp.Model, given: argparse.Namespace) -> str:
    return attribution.compare(model, pairs=PAIRS, repeats=given.repeats)


def exchanged(model: interp.Model, _given: argparse.Namespace) -> str:
    found = effects.compare(model, effects.prompts_of(1), repeats=1)
    return lines(model.name, found)


def patched(model: interp.Model, _given: argparse.Namespace) -> str:
    found = patching.compare(model, short_pair(model), repeats=1, nnsight=False)
    return str(found.to_string(float_format="{:.3g}".format))


def edged(model: interp.Model, given: argparse.Namespace) -> str:
    pair = short_pair(model)
    ways = {"edges": edges.estimated(model, pair), "pass": edges.plain_backward(model, pair)}
    seconds = timed(ways, given.repeats, min)
    found = {
        "edges": float(graph_of(model).edges.sum()),
        "seconds, all edges": seconds["edges"],
        "seconds, one forward and backward pass": seconds["pass"],
        "GiB of this process, at most": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
    }
    return lines(model.name, found)


PARTS: dict[str, Callable[[interp.Model, argparse.Namespace], str]] = {
    # First, so that its peak memory is its own.
    "edges": edged,
    "evaluate": evaluated,
    "attribute": attributed,
    "effects": exchanged,
    "patch": patched,
}


def short_pair(model: interp.Model) -> PatchingPair:
    """Two prompts of one length that differ in a word of the first premise."""
    names = ["side", "gold", "premise1", "premise2", "question"]
    rows = pd.DataFrame([("city", *row) for row in ROWS], columns=["pair", *names])
    base, source = tokenize(model, list(interp.read_pairs(rows)))
    answers = AnswerTokenizer(model)(base).contrast("Yes", "No")
    return PatchingPair.aligned(base, source, answers, policy="all")


if __name__ == "__main__":
    main()
