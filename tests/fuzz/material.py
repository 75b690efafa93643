"""The valid files that cases damage: data, a model, runs, a study and a training, made once."""

import shutil
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

from transformers import PreTrainedModel

from interp.cli import main, parse
from interp.cli.measure import job_of
from interp.errors import UserError
from interp.judging.study import Faithfulness
from interp.measurements.specs import Patch
from interp.measuring.spec import Spec, spec_named
from interp.prompts import source, systems
from interp.prompts.prompt_set import PromptSet
from interp.runs import claims, workers
from interp.studies.study import find_study
from interp.training import fit
from interp_experiments.rulebreakers.system import system
from tests.support.tiny import make_tiny
from tests.support.tokenizers import byte_level

ROWS = 40
"""Rows of the data: both sides of twenty pairs."""

MOST = 40
"""Most pairs, or facts, of a command that asks for all; the default is two pairs."""

RUNS = {
    "evaluate": ("evaluate", "--limit", "4"),
    "attribute": ("attribute", "--keep-tokens", "--limit", "4"),
    "patch": ("patch", "--layers", "0", "--limit", "4"),
    "familiarity": ("probe", "familiarity"),
    "knowledge": ("probe", "knowledge"),
    "linear": ("probe", "linear", "--limit", "4"),
    "study": ("run", "rulebreakers", "--limit", "4"),
}
"""Commands of the runs, by name."""

TRAINING = (
    *("train", "robustlr", "--model", "small-encoder", "--from-scratch", "--device", "cpu"),
    *("--theories", "6", "--held-out", "2", "--distractors", "0", "--epochs", "1"),
    *("--batch", "8", "--checkpoint-steps", "2"),
)
"""A training of five steps; the folder "training" holds it, stopped at `STOPPED`."""

STOPPED = "checkpoint-2"
"""The checkpoint at which the training was stopped."""


@dataclass(frozen=True)
class Case:
    """One case: a folder with damaged or odd files, and a command line that reads them."""

    argv: list[str]
    damage: str = ""
    """A description of what was done to the files."""
    asked: bool = False
    """Whether the command line itself may ask to write outside."""
    refused: bool = False
    """Whether exit code 0 would be wrong, because the numbers would rest on missing weights."""
    planted: Callable[[Path], object] | None = None
    """A function of the folder outside, called in place of the command."""

    def run(self, outside: Path) -> object:
        """The exit code of the command."""
        return main(self.argv) if self.planted is None else self.planted(outside)


@dataclass(frozen=True)
class Material:
    """The places of the valid files."""

    folder: Path
    outside: Path
    """A folder next to the scratch folder, which nothing may change."""
    runs: dict[str, list[str]]
    """Command lines of the runs and the study, without --out; the folders have their names."""

    @property
    def data(self) -> Path:
        """A data file with the published columns."""
        return self.folder / "data.csv"

    @property
    def model(self) -> Path:
        """The folder of a model with two layers."""
        return self.folder / "model"

    def job(self, run: str) -> str:
        """The job of a run, as a worker gets it."""
        _, parsed = parse(self.runs[run])
        probe = "probe-" if hasattr(parsed, "probe") else ""
        what = find_study(parsed.study) if run == "study" else spec_named(probe + run)
        return job_of(parsed, what)[0].model_dump_json()

    def copy(self, name: str, target: Path) -> Path:
        """A copy of one of the folders, to be damaged."""
        return Path(shutil.copytree(self.folder / name, target))


Make = Callable[[Random, int, Material, Path], Case]
"""Makes a case from chance, its number, and the material, in an empty folder."""


def make(folder: Path, outside: Path) -> Material:
    """Make everything; all cases then share what commands import and cache."""
    _shorten()
    folder.mkdir()
    material = Material(folder, outside, {})
    system.dataset(seed=3).head(ROWS).to_csv(material.data, index=False)
    save(make_tiny("llama", byte_level()).hf, material.model)
    for name, command in RUNS.items():
        model = "organism/llama-shallow" if name == "study" else str(material.model)
        argv = [*command, "--model", model, "--data", str(material.data), "--device", "cpu"]
        _must_work([*argv, "--out", str(folder / name)])
        material.runs[name] = argv
        reported = name in ("evaluate", "attribute", "patch", "study")
        for look in ("status", "validate", *(("report",) if reported else ())):
            _must_work([look, str(folder / name)])
    worker = ["work", str(folder / "evaluate"), "0", "--call", "0123456789ab", "--"]
    _must_work([*worker, material.job("evaluate")])
    _must_work(["models"])
    _make_training(folder / "training")
    return material


def _shorten() -> None:
    """Make runs short: few prompts in several shards, and claims that expire soon.

    No case uses a whole data set, all facts or all organisms, and none starts a process.
    """
    of_source, of_facts = source.PromptSource.pairs, systems.load_facts
    of_load = source.PromptSource.load

    def few_pairs(own: source.PromptSource, default: int | None = None) -> int:
        return min(of_source(own, 2) or MOST, MOST)

    def load_few(own: source.PromptSource) -> PromptSet:
        return of_load(own.model_copy(update={"limit": few_pairs(own)}))

    def start_none(*given: object, **named: object) -> None:
        raise UserError("no process is started here")

    for module, name, value in (
        (Spec, "shard_prompts", 2),
        (Patch, "shard_prompts", 2),
        (source.PromptSource, "pairs", few_pairs),
        (source.PromptSource, "load", load_few),
        (Faithfulness, "organisms_for", lambda own, chosen: ("logical-forms",)),
        (systems, "load_facts", lambda *given, **named: of_facts(*given, **named)[:MOST]),
        (claims, "PATIENCE", 1.0),
        (workers, "start_local", start_none),
    ):
        if not hasattr(module, name):
            raise RuntimeError(f"{module.__name__} has no {name} any longer; update tests/fuzz")
        setattr(module, name, value)


def _make_training(folder: Path) -> None:
    """Make a training that was stopped once its first checkpoint was saved."""

    def stopping(checkpoint: Path, place: Path) -> None:
        keep(checkpoint, place)
        raise KeyboardInterrupt

    keep = fit.keep
    fit.keep = stopping
    code = main([*TRAINING, "--out", str(folder)])
    fit.keep = keep
    if code != 130 or not (folder / STOPPED).is_dir():
        raise RuntimeError(f"a training that was to be stopped ended with {code}")
    whole = shutil.copytree(folder, folder.with_name("whole training"))
    _must_work([*TRAINING, "--out", str(whole)])


def _must_work(argv: list[str]) -> None:
    code = main(argv)
    if code:
        raise RuntimeError(f"a valid command ended with {code}: {argv}")


def save(model: PreTrainedModel, folder: Path) -> None:
    """Write a model with its tokenizer, as models are published."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.save_pretrained(folder)
        byte_level().save_pretrained(folder)
