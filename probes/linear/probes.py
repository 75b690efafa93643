"""Linear probes of the residual stream: whether a model encodes more than it states.

Of two halves of the prompts that share no entity, or no other unit (`halves`), each gives a ridge
regression of the label, whose sign predicts the labels of the other half. The same with the labels
of random entity pairs swapped is the control task (Hewitt and Liang, 2019), and also a permutation
test of the accuracy.

Ridge regression has a closed form, and all label vectors share one factorization, so every control
is a full refit of the probe. It is the first Newton step of a logistic regression with C = 4 /
`RIDGE`; in 60 cells from six organisms, the accuracies of the two differed by at most 0.016.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from scipy.special import stdtrit
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from interp import UserError
from interp.extend.measuring import Filters
from interp.extend.statistics import FEWEST, UPPER, too_few, wilson
from interp_probes.linear.halves import DROPPED, ENTITIES, GROUP, entity_halves, with_entities

RIDGE = 400.0
"""scikit-learn's alpha for standardized features; large, since there are more features than
entities."""

CONTROLS = 999
"""Number of draws of the control labels."""

Residuals = Sequence[str | Path] | pd.DataFrame
"""The residuals table, or the files that hold it, which are read layer by layer."""

Vectors = NDArray[np.float32]
Booleans = NDArray[np.bool_]
Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class ProbeTask:
    """The prompts of one model on which a probe is trained and tested."""

    prompts: pd.DataFrame
    """prompt_id, entity_b, group, half, label and recognized; dropped prompts are omitted."""
    labels: Booleans
    """(prompt, 1 + draw): the true labels, then the control labels. In each draw, the labels of
    each entity are swapped with probability one half.
    """
    dropped: int
    """Number of prompts whose entities lie in different halves, or whose pair has an error."""


def held_out(prompts: pd.DataFrame, unit: str | None) -> str:
    """The name of the unit, such as an entity, that the two halves do not share."""
    return "entity" if set(ENTITIES) <= set(prompts) else (unit or "pair")


def linear_probes(
    residuals: Residuals,
    prompts: pd.DataFrame,
    answers: pd.DataFrame,
    *,
    unit: str | None = None,
    seed: int = 0,
) -> pd.DataFrame:
    """Accuracy with which probes read a prompt's side from the residual stream, held out by entity.

    The label is the side: rulebreaker or not. In RULEBREAKERS, both sides of a pair say the same
    about B and differ only in A, so the label is also the truth value of "B is in A" (or "B is a
    kind of A"): a probe cannot separate the two.

    Args:
        residuals: the residuals table, or the files that hold it, which are read layer by layer.
        prompts: the prompts table; each entity_group, if there is one, is split between the halves
            and has its own rows.
        answers: the answers table.
        unit: the factor that replaces the entities if prompts have no entity_a and entity_b; the
            pair if None.
        seed: seed of the control labels.

    Returns:
        One row per model, position, layer, and subset of the prompts (`prompts`: all, recognized,
        failed, and each entity group). accuracy is the share of prompts predicted correctly, and
        chance is 0.5; accuracy_low and accuracy_high bound its 95% interval (`_interval`), which is
        not that of p.
        control_accuracy is the mean over `CONTROLS` draws in which the labels of both sides of an
        entity pair are swapped together at random, and control_sd their standard deviation;
        selectivity = accuracy - control_accuracy. p is one-sided: the share of draws whose labels
        are predicted at least as well as the true labels, which count as one more draw. p_family is
        this share if each draw counts with its largest accuracy over all positions and layers of
        the model (Westfall and Young, 1993). With fewer than ten clusters, nothing is tested.
        n_clusters counts distinct Bs or units; n_dropped prompts are omitted because their entities
        lie in different halves or their pair has an error. Undefined numbers are NaN, and `note`
        gives the reason.

    Raises:
        UserError: the prompts do not have two sides, a model lacks answers to prompts, or residuals
            are missing.
    """
    prompts = with_entities(prompts, unit)
    halves = entity_halves(prompts)
    tables = []
    for model, cells in _cells(residuals):
        task = _task(model, prompts, answers, halves, seed=seed)
        rows, drawn = [], []
        for position, layer in cells:
            vectors = _vectors(residuals, model, position, layer, task)
            for row, controls in _probe(task, vectors):
                rows.append({"model": model, "position": position, "layer": layer, **row})
                drawn.append(controls)
        tables.append(_tested(pd.DataFrame(rows), np.array(drawn)))
    if not tables:
        raise UserError("no prompt could be measured; the errors are in the answers table")
    return pd.concat(tables, ignore_index=True)


def _task(
    model: str, prompts: pd.DataFrame, answers: pd.DataFrame, halves: pd.Series, *, seed: int
) -> ProbeTask:
    sides = sorted(prompts["side"].unique())
    if len(sides) != 2:
        raise UserError(
            f"the prompts have the sides {', '.join(sides)}; linear probes require exactly two"
        )
    chosen = answers["model"] == model
    correct = answers[chosen].set_index("prompt_id")["correct"]
    if not prompts["prompt_id"].isin(correct.index).all():
        raise UserError(f"{model} lacks answers to some prompts; measure it on all prompts")
    table = prompts[["prompt_id", "entity_b"]].assign(group=prompts.get(GROUP))
    table["half"] = prompts["prompt_id"].map(halves)
    table["label"] = prompts["side"] == sides[0]
    right = prompts["prompt_id"].map(correct).eq(True)
    table["recognized"] = right.groupby(prompts["pair_id"]).transform("all")
    failed = prompts["prompt_id"].isin(answers.loc[chosen & (answers["error"] != ""), "prompt_id"])
    table.loc[failed.groupby(prompts["pair_id"]).transform("any"), "half"] = DROPPED
    kept = table["half"] != DROPPED
    table = table[kept].reset_index(drop=True)
    entity, entities = pd.factorize(table["entity_b"], sort=True)
    swapped = np.random.default_rng(seed).random((len(entities), CONTROLS)) < 0.5
    label = table["label"].to_numpy(dtype=bool)[:, None]
    return ProbeTask(table, np.hstack([label, label ^ swapped[entity]]), int((~kept).sum()))


def _cells(residuals: Residuals) -> Iterator[tuple[str, list[tuple[str, int]]]]:
    """Each model and its positions in order of appearance, with the layers in their order."""
    table = _read(residuals, ["model", "position", "layer"])
    distinct = table.group_by(["model", "position", "layer"], use_threads=False).aggregate([])
    for model, rows in distinct.to_pandas().groupby("model", sort=False):
        by_position = rows.groupby("position", sort=False)["layer"]
        yield str(model), [(str(p), int(n)) for p, layers in by_position for n in sorted(layers)]


def _read(residuals: Residuals, columns: list[str], filters: Filters | None = None) -> pa.Table:
    """Columns of the rows. Paths are made absolute, since pyarrow treats "http:/x" as a URL."""
    if isinstance(residuals, pd.DataFrame):
        table = pa.Table.from_pandas(residuals, preserve_index=False)
        kept = table if filters is None else table.filter(pq.filters_to_expression(filters))
        return kept.select(columns)
    paths = [Path(file).absolute() for file in residuals]
    return pq.read_table(paths, columns=columns, filters=filters)


def _vectors(
    residuals: Residuals, model: str, position: str, layer: int, task: ProbeTask
) -> Vectors:
    """The vectors of one layer, (prompt, size), in the order of the task's prompts."""
    filters = [("model", "=", model), ("position", "=", position), ("layer", "=", layer)]
    table = _read(residuals, ["prompt_id", "vector"], filters).to_pandas()
    by_prompt = table.set_index("prompt_id")["vector"]
    if missing := set(task.prompts["prompt_id"]) - set(by_prompt.index):
        raise UserError(
            f"the residuals lack {len(missing):,} prompts of {model}; finish its run first"
        )
    size = len(by_prompt.iloc[0])
    vectors = by_prompt.loc[task.prompts["prompt_id"]].tolist()
    return np.array(vectors, dtype=np.float32).reshape(-1, size)


def _probe(task: ProbeTask, vectors: Vectors) -> Iterator[tuple[dict[str, object], Numbers]]:
    """One row per subset for a model, position and layer, with the control accuracies."""
    right, why = _held_out(vectors, task.labels, task.prompts["half"].to_numpy())
    held_out = task.prompts.assign(right=right[:, 0])
    for name, inside in _subsets(task.prompts):
        subset = held_out[inside]
        note = why
        if not note and subset["label"].nunique() < 2:
            note = f"undefined: {'no such prompts' if subset.empty else 'only one label'}"
        shares = np.full(right.shape[1], np.nan) if note else right[inside].mean(axis=0)
        low, high = (np.nan, np.nan) if note else _interval(subset)
        if np.isnan(low) and not note:
            note = "no interval: a half has only one cluster, or the clusters do not differ"
        accuracy, controls = float(shares[0]), shares[1:]
        row = {
            "prompts": name,
            "accuracy": accuracy,
            "accuracy_low": low,
            "accuracy_high": high,
            "control_accuracy": float(controls.mean()),
            "control_sd": float(controls.std()),
            "selectivity": accuracy - float(controls.mean()),
            "n_prompts": len(subset),
            "n_clusters": subset["entity_b"].nunique(),
            "n_dropped": task.dropped,
            "note": note,
        }
        yield row, controls


def _subsets(prompts: pd.DataFrame) -> Iterator[tuple[str, Booleans]]:
    """The subsets of the prompts by name, as boolean masks; "failed" is all not "recognized"."""
    recognized = prompts["recognized"].to_numpy(dtype=bool)
    yield "all", np.ones_like(recognized)
    yield "recognized", recognized
    yield "failed", ~recognized
    for group in prompts["group"].dropna().unique():
        yield group, (prompts["group"] == group).to_numpy()


def _held_out(vectors: Vectors, labels: Booleans, half: NDArray[np.int64]) -> tuple[Numbers, str]:
    """Whether the other half's probe predicts each label: 1, 0, or NaN if undefined; and a note."""
    right = np.full(labels.shape, np.nan)
    if any(len(set(labels[half == side, 0])) < 2 for side in (0, 1)):
        return right, "undefined: a half lacks one of the labels"
    if not np.isfinite(vectors).all():
        return right, "undefined: some vectors are not finite"
    numbers, signs = vectors.astype(float), np.where(labels, 1.0, -1.0)
    for trained in (0, 1):
        inside = half == trained
        probe = make_pipeline(StandardScaler(), Ridge(alpha=RIDGE, solver="cholesky"))
        probe.fit(numbers[inside], signs[inside])
        predicted = probe.predict(numbers[~inside]).reshape(-1, labels.shape[1])
        right[~inside] = (predicted > 0) == labels[~inside]
    return right, ""


def _interval(subset: pd.DataFrame) -> tuple[float, float]:
    """The 95% interval of the share of correct predictions; NaN if clusters do not vary.

    Near chance, the halves' estimates are fully correlated, so their clustered standard errors are
    averaged and t has the smaller half's degrees of freedom. The interval is Wilson's for as many
    independent trials as give this error; if all or no predictions are correct, for the smaller
    half's entity pairs. In 400 simulated samples of 60 entity pairs, it covered 97% to 98%.
    """
    halves = [_clustered(rows) for _, rows in subset.groupby("half")]
    weights = subset.groupby("half").size().to_numpy() / len(subset)
    share, clusters = float(subset["right"].mean()), min(clusters for _, clusters in halves)
    if clusters < 2:
        return np.nan, np.nan
    error = sum(weight * error for weight, (error, _) in zip(weights, halves, strict=True))
    variance = share * (1 - share)
    if variance and not error:
        return np.nan, np.nan
    trials = variance / error**2 if variance else clusters
    numbers = (np.array([x], dtype=float) for x in (share, trials, stdtrit(clusters - 1, UPPER)))
    low, high = wilson(*numbers)
    return float(low[0]), float(high[0])


def _clustered(rows: pd.DataFrame) -> tuple[float, int]:
    """The standard error of a half's share, clustered by entity pair, and the number of pairs."""
    by_entity = rows.groupby("entity_b")["right"].agg(["sum", "size"])
    clusters = len(by_entity)
    deviations = by_entity["sum"] - rows["right"].mean() * by_entity["size"]
    squares = clusters / max(clusters - 1, 1) * float((deviations**2).sum())
    return float(np.sqrt(squares)) / len(rows), clusters


def _tested(rows: pd.DataFrame, controls: Numbers) -> pd.DataFrame:
    """The rows of one model with p and p_family, computed from control accuracies (row, draw)."""
    observed = rows["accuracy"].to_numpy()
    largest = np.empty_like(controls)
    for subset in rows["prompts"].unique():
        inside = (rows["prompts"] == subset).to_numpy()
        largest[inside] = np.fmax.reduce(controls[inside])
    place = list(rows.columns).index("accuracy_high") + 1
    few = rows["n_clusters"] < FEWEST
    for name, draws in (("p_family", largest), ("p", controls)):
        p = (1 + (draws >= observed[:, None]).sum(axis=1)) / (1 + CONTROLS)
        rows.insert(place, name, np.where(np.isnan(observed) | few, np.nan, p))
    notes = rows["n_clusters"].map(too_few)
    return rows.assign(note=rows["note"].mask(few & (rows["note"] == ""), notes))
