"""Whether a model encodes what it does not say: linear probes of the residual stream.

1. Split the prompts into two halves that share no entity (`probes.halves`).
2. Read the vectors of one model, position and layer.
3. Cross-fit: a logistic regression trained on either half predicts the other.
4. Do the same with shuffled labels, the control task (Hewitt and Liang 2019).
5. Count: accuracy on all prompts and on those whose pair the model recognized or failed, bootstrap
   intervals over entity pairs, and selectivity.
"""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from interp.analysis.intervals import percentile_interval
from interp.analysis.resampling import bootstrap_sums
from interp.errors import UserError
from interp_probes.halves import DROPPED, entity_halves

REGULARIZATION = 0.01
"""scikit-learn's C for standardised features: strong, for there are more features than entities."""

ITERATIONS = 2000
"""Most steps of the solver; a fit that needs more is named in `note`."""

RESAMPLES = 1000
"""Bootstrap resamples of the entity pairs."""

SUBSETS = ("all", "recognized", "failed")
"""All held-out prompts; both sides of the pairs that the model answers correctly on both sides;
both sides of the other pairs."""

Vectors = NDArray[np.float32]
Booleans = NDArray[np.bool_]
Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Task:
    """The prompts of one model that a probe is trained and tested on."""

    prompts: pd.DataFrame
    """prompt_id, entity_b, half, label, control and recognized; dropped prompts are left out."""
    dropped: int
    """Prompts whose entities lie in both halves."""


def linear_probes(
    residuals: Sequence[Path], prompts: pd.DataFrame, answers: pd.DataFrame, *, seed: int = 0
) -> pd.DataFrame:
    """Accuracy with which a prompt's side is read from the residual stream, held out by entity.

    The label is the side: rulebreaker or not. Both sides of a pair state the same about B and
    differ in A alone, so in these prompts the label is also the truth value of "B is in A" (or
    "B is a kind of A"): a probe cannot separate the two.

    Args:
        residuals: files of the residuals table (`probes.residuals`); read layer by layer.
        prompts: the prompts table, with prompt_id, pair_id, side, entity_a and entity_b.
        answers: the answers table, with model, prompt_id and correct.
        seed: decides the control labels and the bootstrap samples.

    Returns:
        One row per model, position, layer and subset of the prompts (`prompts`: all, recognized or
        failed). accuracy is a share of prompts, chance 0.5; accuracy_low and accuracy_high bound
        its 95% bootstrap interval, which resamples entity pairs and does not train again. Near
        chance it is too narrow, because both folds' errors depend on the same two halves: of 240
        intervals on noise (60 entity pairs, 8 dimensions) 87% held 0.5.
        control_accuracy is that of labels swapped at random, both sides of an entity pair together;
        selectivity = accuracy - control_accuracy. n_prompts and n_entities (distinct B) were
        counted; n_dropped prompts were left out because their entities lie in both halves. Where a
        number is undefined it is NaN and `note` says why.

    Raises:
        UserError: prompts that do not have two sides, a model without answers, or no residuals.
    """
    halves = entity_halves(prompts)
    rows: list[dict[str, object]] = []
    for model, cells in _cells(residuals):
        task = _task(model, prompts, answers, halves, seed=seed)
        for position, layer in cells:
            vectors = _vectors(residuals, model, position, layer, task)
            key = {"model": model, "position": position, "layer": layer}
            rows += [{**key, **row} for row in _probe(task, vectors, seed=seed)]
    if not rows:
        raise UserError("no prompt could be measured; the errors of the answers table say why")
    return pd.DataFrame(rows)


def _task(
    model: str, prompts: pd.DataFrame, answers: pd.DataFrame, halves: pd.Series, *, seed: int
) -> Task:
    sides = sorted(prompts["side"].unique())
    if len(sides) != 2:
        raise UserError(
            f"the prompts have the sides {', '.join(sides)}; linear probes need exactly two"
        )
    correct = answers.loc[answers["model"] == model].set_index("prompt_id")["correct"]
    if not prompts["prompt_id"].isin(correct.index).all():
        raise UserError(f"{model} has no answers to some of the prompts; measure it on all of them")
    table = prompts[["prompt_id", "pair_id", "entity_b"]].copy()
    table["half"] = prompts["prompt_id"].map(halves)
    table["label"] = prompts["side"] == sides[0]
    table["control"] = table["label"] ^ table["entity_b"].isin(_swapped(prompts, seed))
    right = prompts["prompt_id"].map(correct).astype(bool)
    table["recognized"] = right.groupby(prompts["pair_id"]).transform("all")
    kept = table["half"] != DROPPED
    return Task(table[kept].reset_index(drop=True), int((~kept).sum()))


def _swapped(prompts: pd.DataFrame, seed: int) -> list[str]:
    """The entities whose two sides swap labels in the control task, each with probability 1/2."""
    entities = sorted(prompts["entity_b"].unique())
    coins = np.random.default_rng(seed).random(len(entities)) < 0.5
    return [entity for entity, swapped in zip(entities, coins, strict=True) if swapped]


def _cells(files: Sequence[Path]) -> Iterator[tuple[str, list[tuple[str, int]]]]:
    """Each model of the files with its positions and layers, in order of appearance."""
    table = pq.read_table(list(files), columns=["model", "position", "layer"])
    distinct = table.group_by(["model", "position", "layer"], use_threads=False).aggregate([])
    for model, rows in distinct.to_pandas().groupby("model", sort=False):
        yield (
            str(model),
            [(str(p), int(n)) for p, n in zip(rows["position"], rows["layer"], strict=True)],
        )


def _vectors(files: Sequence[Path], model: str, position: str, layer: int, task: Task) -> Vectors:
    """The vectors of one layer, (prompt, size), in the order of the task's prompts."""
    filters = [("model", "=", model), ("position", "=", position), ("layer", "=", layer)]
    columns = ["prompt_id", "vector"]
    table = pq.read_table(list(files), columns=columns, filters=filters).to_pandas()
    by_prompt = table.set_index("prompt_id")["vector"]
    if missing := set(task.prompts["prompt_id"]) - set(by_prompt.index):
        raise UserError(
            f"the residuals lack {len(missing):,} prompts of {model}; finish its run first"
        )
    size = len(by_prompt.iloc[0])
    vectors = by_prompt.loc[task.prompts["prompt_id"]].tolist()
    return np.array(vectors, dtype=np.float32).reshape(-1, size)


def _probe(task: Task, vectors: Vectors, *, seed: int) -> Iterator[dict[str, object]]:
    """The rows of one model, position and layer, one per subset."""
    prompts = task.prompts
    half = prompts["half"].to_numpy()
    right, note = _held_out(vectors, prompts["label"].to_numpy(), half)
    control, control_note = _held_out(vectors, prompts["control"].to_numpy(), half)
    held_out = prompts.assign(right=right, control_right=control)
    notes = [note, f"control: {control_note}" if control_note else ""]
    for name, subset in zip(SUBSETS, _subsets(held_out), strict=True):
        yield {"prompts": name, **_accuracies(subset, notes, task, seed=seed)}


def _subsets(held_out: pd.DataFrame) -> tuple[pd.DataFrame, ...]:
    recognized = held_out["recognized"].astype(bool)
    return held_out, held_out[recognized], held_out[~recognized]


def _held_out(vectors: Vectors, labels: Booleans, half: NDArray[np.int64]) -> tuple[Numbers, str]:
    """Whether the other half's probe predicts each label: 1, 0 or NaN; and a note."""
    undefined = np.full(len(labels), np.nan)
    if any(len(set(labels[half == side])) < 2 for side in (0, 1)):
        return undefined, "undefined: a half lacks one of the labels"
    if not np.isfinite(vectors).all():
        return undefined, "undefined: some vectors are not finite"
    right, converged = undefined.copy(), True
    for trained in (0, 1):
        inside = half == trained
        probe = LogisticRegression(C=REGULARIZATION, max_iter=ITERATIONS)
        pipeline = make_pipeline(StandardScaler(), probe)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            pipeline.fit(vectors[inside], labels[inside])
        converged &= bool((probe.n_iter_ < ITERATIONS).all())
        right[~inside] = pipeline.predict(vectors[~inside]) == labels[~inside]
    return right, "" if converged else "the fit did not converge"


def _accuracies(
    subset: pd.DataFrame, notes: list[str], task: Task, *, seed: int
) -> dict[str, object]:
    if subset["label"].nunique() < 2:
        subset = subset.assign(right=np.nan, control_right=np.nan)
        notes = [f"undefined: {'one label only' if len(subset) else 'no such prompts'}"]
    accuracy, control = float(subset["right"].mean()), float(subset["control_right"].mean())
    low, high = _interval(subset, seed=seed)
    if np.isnan(low) and not np.isnan(accuracy):
        notes = [*notes, "no interval: one entity pair only"]
    return {
        "accuracy": accuracy,
        "accuracy_low": low,
        "accuracy_high": high,
        "control_accuracy": control,
        "selectivity": accuracy - control,
        "n_prompts": len(subset),
        "n_entities": subset["entity_b"].nunique(),
        "n_dropped": task.dropped,
        "note": "; ".join(note for note in notes if note),
    }


def _interval(subset: pd.DataFrame, *, seed: int) -> tuple[float, float]:
    """Percentiles of the accuracy over samples of entity pairs; NaN where there is only one."""
    by_entity = subset.groupby("entity_b")["right"].agg(["sum", "size"]).to_numpy(dtype=float)
    if len(by_entity) < 2 or subset["right"].isna().any():
        return float("nan"), float("nan")
    right, prompts = bootstrap_sums(by_entity, resamples=RESAMPLES, seed=seed).T
    return percentile_interval(right / prompts)
