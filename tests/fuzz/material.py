"""The valid things that cases damage: data, models, runs and a study, made once for a server."""

import shutil
import warnings
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from transformers import PreTrainedModel

from interp.cli import main, parse
from interp.cli.measure import asked
from interp.measurements.spec import Spec, find_spec
from interp.measurements.specs import Patch
from interp.prompts import source
from interp.runs import claims
from interp.studies.faithfulness.study import Faithfulness
from interp.training import fit
from interp_experiments.rulebreakers.system import system
from interp_probes import facts
from tests.support.tiny import make_tiny
from tests.support.tokenizers import byte_level

ROWS = 40
"""Rows of the data: the two sides of twenty pairs."""

SIZE = ("--limit", "4", "--device", "cpu")
"""Options that keep what is measured small."""

_RUNS = {
    "evaluate": ("evaluate",),
    "attribute": ("attribute", "--keep-tokens"),
    "patch": ("patch", "--layers", "0"),
    "familiarity": ("probe", "familiarity"),
    "knowledge": ("probe", "knowledge"),
    "linear": ("probe", "linear"),
}
"""Runs that are made, by name; a study comes on top."""

TRAINING = (
    *("train", "robustlr", "--model", "small-encoder", "--from-scratch", "--device", "cpu"),
    *("--theories", "6", "--held-out", "2", "--distractors", "0", "--epochs", "1"),
    *("--batch", "8", "--checkpoint-steps", "2"),
)
"""A training of five steps; the folder "training" holds it as it was stopped."""

STOPPED = "checkpoint-2"
"""Where it was stopped."""

MOST = 40
"""Pairs, or facts, of a command that asks for all; where none are asked for there are two pairs."""

INTERRUPTED = 130
"""Exit code after Ctrl-C."""

_WITHOUT_LIMIT = ("familiarity", "knowledge")
_REPORTED = ("evaluate", "attribute", "patch", "study")


@dataclass(frozen=True)
class Material:
    """Where the valid things are."""

    folder: Path
    outside: Path
    """A folder beside the scratch folder, which nothing may touch."""
    runs: dict[str, list[str]]
    """Command lines of the runs and the study, without --out; each in a folder of its name."""

    @property
    def data(self) -> Path:
        """A file in the published columns."""
        return self.folder / "data.csv"

    @property
    def model(self) -> Path:
        """The folder of a model of two layers."""
        return self.folder / "model"

    def job(self, run: str) -> str:
        """What a worker of a run is handed."""
        _, parsed = parse(self.runs[run])
        if run == "study":
            from interp.studies.plan import find_study

            return asked(parsed, find_study(parsed.study))[0].model_dump_json()
        probe = "probe-" if hasattr(parsed, "probe") else ""
        return asked(parsed, find_spec(probe + run))[0].model_dump_json()

    def frame(self) -> pd.DataFrame:
        """The content of the data file."""
        return pd.read_csv(self.data)

    def copy(self, name: str, target: Path) -> Path:
        """A copy of one of the things, to be damaged."""
        return Path(shutil.copytree(self.folder / name, target))


def make(folder: Path, outside: Path) -> Material:
    """Make everything; whatever commands import or remember is there afterwards for all cases."""
    _shorten()
    folder.mkdir()
    material = Material(folder, outside, {})
    system.dataset(seed=3).head(ROWS).to_csv(material.data, index=False)
    save(tiny_model(), material.model)
    given = ["--model", str(material.model), "--data", str(material.data)]
    for name, command in _RUNS.items():
        size = SIZE[2:] if name in _WITHOUT_LIMIT else SIZE
        _make_run(material, name, [*command, *given, *size])
    study = ["run", "rulebreakers", "--data", str(material.data), *SIZE]
    _make_run(material, "study", [*study, "--model", "organism/llama-shallow"])
    for name in material.runs:
        for command in ("status", "validate", *(("report",) if name in _REPORTED else ())):
            _must_work([command, str(folder / name)])
    worker = ["work", str(folder / "evaluate"), "0", "--call", "0123456789ab", "--"]
    _must_work([*worker, material.job("evaluate")])
    _must_work(["models"])
    _make_training(folder / "training")
    return material


def _shorten() -> None:
    """Few prompts in several shards, and claims that soon are void: a wait for one is no hang.

    Nobody waits for the whole of a data set, for all of its facts, or for all organisms.
    """
    of_source, of_facts = source.PromptSource.pairs, facts.load_facts
    for module, name, value in (
        (Spec, "shard_prompts", 2),
        (Patch, "shard_prompts", 2),
        (source.PromptSource, "pairs", lambda own, default: min(of_source(own, 2) or MOST, MOST)),
        (Faithfulness, "organisms_for", lambda own, chosen: ("logical-forms",)),
        (facts, "load_facts", lambda *given, **named: of_facts(*given, **named)[:MOST]),
        (claims, "BEAT", 0.2),
        (claims, "EXPIRY", 1.0),
    ):
        if not hasattr(module, name):
            raise RuntimeError(f"{module.__name__} has no {name} any longer; update tests/fuzz")
        setattr(module, name, value)


def _make_run(material: Material, name: str, argv: list[str]) -> None:
    _must_work([*argv, "--out", str(material.folder / name)])
    material.runs[name] = argv


def _make_training(folder: Path) -> None:
    """A training that was stopped once its first checkpoint was saved."""

    def stopping(checkpoint: Path, place: Path) -> None:
        keep(checkpoint, place)
        raise KeyboardInterrupt

    keep = fit.keep
    fit.keep = stopping
    code = main([*TRAINING, "--out", str(folder)])
    fit.keep = keep
    if code != INTERRUPTED or not (folder / STOPPED).is_dir():
        raise RuntimeError(f"a training that was to be stopped ended with {code}")
    shutil.copytree(folder, folder.with_name("whole training"))
    _must_work([*TRAINING, "--out", str(folder.with_name("whole training"))])


def _must_work(argv: list[str]) -> None:
    code = main(argv)
    if code:
        raise RuntimeError(f"a valid command ended with {code}: {argv}")


def tiny_model() -> PreTrainedModel:
    """A model of two layers with random weights."""
    return make_tiny("llama", byte_level()).hf


def save(model: PreTrainedModel, folder: Path) -> Path:
    """Write a model with its tokenizer, as models are published."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.save_pretrained(folder)
        byte_level().save_pretrained(folder)
    return folder
