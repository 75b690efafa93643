"""How often each reading of the answers is correct, beside baselines that read no prompt."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cached_property, partial
from typing import Any

import numpy as np
import pandas as pd

from interp.analysis.accuracy import alone
from interp.analysis.constant import ALIKE, best_constant
from interp.analysis.readings import (
    CONTENT_FREE,
    FORCED,
    FREE,
    MEDIAN,
    content_free_choice,
    forced_choice,
    free_choice,
    median_choice,
    scored_options,
)
from interp.statistics.decisions import HOLM_LEAST, LEAST, SIGNIFICANT, UNTESTED, holm, out_of_reach
from interp.statistics.discrimination import mean_concordance
from interp.statistics.means import ClusterMean, cluster_mean, least_p
from interp.statistics.proportions import proportions

CHANCE, CONSTANT = "chance", "constant answer"
"""Baselines: each option is equally probable; the most frequent correct answer to such options."""

SWAPPED, WITHOUT = "swapped options", "without "
"""Names of forced choices after changed prompts; the second is followed by the segment's name."""

NO_MODEL = "(no model)"
"""What tables name in place of a model in the rows of baselines."""

ABOVE, BELOW, EQUAL = "above", "below", "not different"
"""Verdicts on an accuracy, compared with the better baseline; or `UNTESTED`."""

FEW_SIDES = 3
"""If there are more sides than this, only the accuracies over prompts and groups are given."""


_ENDS = ("low", "high")
_mean_over_units = partial(mean_concordance, cluster="unit", weight="weight")
mean_over = partial(cluster_mean, value="over", cluster="unit", weight="weight")
"""The mean of the column over, with its test."""


class Sample:
    """The prompts that offer a choice, with their baselines and the units of statistics."""

    def __init__(
        self, prompts: pd.DataFrame, options: pd.DataFrame, cluster: str | None = None
    ) -> None:
        """Create the sample; `cluster` is the factor of dependent prompts, if any."""
        alike = cluster is not None and prompts.groupby("pair_id")[cluster].nunique().max() <= 1
        self.cluster = cluster if alike else None
        self.unit = self.cluster or "pair_id"
        """The column of the units: the cluster or, without any, the pair."""
        several = options.dropna(subset="relative_probability")
        names = several.drop_duplicates(["prompt_id", "option"]).groupby("prompt_id", sort=False)
        self.prompts = prompts.merge(
            names["option"].agg(tuple).rename("options"), left_on="prompt_id", right_index=True
        )
        self.prompts["unit"] = self.prompts[self.unit]
        sides = self.prompts["side"].unique()
        self.sides = tuple(map(str, sides)) if 1 < len(sides) <= FEW_SIDES else ()

    def scored(self, options: pd.DataFrame) -> pd.DataFrame:
        """One model's options of these prompts (`scored_options`)."""
        return scored_options(options, self.prompts, unit=self.unit)

    @cached_property
    def baselines(self) -> Mapping[str, pd.Series]:
        """The probability of a correct answer to each prompt, by baseline; the better one last."""
        by_prompt = self.prompts.set_index("prompt_id")
        guesses = {CHANCE: 1 / by_prompt["options"].map(len)}
        constant = best_constant(self.prompts)
        if constant is not None:
            right = (constant == self.prompts["gold"]).astype(float).to_numpy()
            guesses[CONSTANT] = pd.Series(right, by_prompt.index)
        weights = by_prompt["weight"].to_numpy(dtype=float)
        # Of equal ones, chance is the better one.
        order = sorted(
            guesses,
            key=lambda name: (np.average(guesses[name], weights=weights).round(9), name == CHANCE),
        )
        return {name: guesses[name] for name in order}

    @property
    def better(self) -> str:
        """The name of the better baseline."""
        return list(self.baselines)[-1]


def reading_table(sample: Sample, readings: Mapping[tuple[str, str], pd.DataFrame]) -> pd.DataFrame:
    """One row per model and reading, then one per baseline.

    Columns are model and reading; accuracy (over prompts), low, high; paired_accuracy (the share of
    pairs, or groups, whose members are all correct), paired_low, paired_high; {side}_accuracy with
    its interval, if there are two or three sides; outside (share of prompts whose reply is outside
    the options) and tied (share of prompts with several equally probable answers); over, over_low,
    over_high: the accuracy minus that of the better baseline; p and p_holm, of a difference of 0;
    p_holm_least (the smallest p_holm that so many tests of so few clusters allow; if no test can be
    significant, verdicts are `UNTESTED`); compared (that baseline), verdict; columns that end in
    _chance: the same for chance; prompts (judged), pairs, clusters and note. In all shares, prompts
    count by their weights. Intervals and p of accuracies and differences are those of
    `mean_concordance` over clusters (pairs if there are none), so p is at most 0.05 if and only if
    the interval excludes 0; where all prompts have as many options, over_chance is the accuracy
    minus one number, and so are its ends. Intervals of pairs and sides are those of `proportions`.
    Both p_holm are corrected over all tests of the table (Holm, 1979). Each reading has credit,
    tied and, if known, outside, by prompt_id.
    """
    # One family of tests, since a reader would notice a difference from either baseline.
    tests = corrected(
        [
            {"baseline": name, **asdict(_over(sample, credits["credit"], sample.baselines[name]))}
            for name in dict.fromkeys([sample.better, CHANCE])
            for credits in readings.values()
        ]
    )
    tested = tests["p_holm"].mask(out_of_reach(tests))
    tests["verdict"] = [*map(_verdict, tested, tests["mean"])]
    of = {name: rows.reset_index(drop=True) for name, rows in tests.groupby("baseline")}
    rows = []
    compared = of[sample.better].to_dict("records")
    for ((model, reading), credits), test in zip(readings.items(), compared, strict=True):
        row = _row(sample, credits)
        untested = test["note"] if row["prompts"] and np.isnan(test["p"]) else ""
        note = joined(_lacking(reading, credits), row.get("note"), untested)
        rows.append({"model": model, "reading": reading, **row, "note": note})
    table = pd.DataFrame(rows).assign(compared=sample.better)
    table[HOLM_LEAST] = tests[HOLM_LEAST].max()
    for name, ending in ((sample.better, ""), (CHANCE, "_chance")):
        columns = {"mean": f"over{ending}", **{end: f"over{ending}_{end}" for end in _ENDS}}
        columns |= {column: f"{column}{ending}" for column in ("p", "p_holm", "verdict")}
        table = table.join(of[name][[*columns]].rename(columns=columns))
    ends = [name for name in table if str(name).endswith(("low", "high"))]
    baselines = [  # known, so they have no intervals
        {"model": NO_MODEL, "reading": name, **_row(sample, credits.to_frame("credit"))}
        | {**dict.fromkeys(ends, np.nan), "note": ""}
        for name, credits in reversed([*sample.baselines.items()])
    ]
    table = pd.concat([table, pd.DataFrame(baselines)], ignore_index=True)
    sides = [f"{side}_{name}" for side in sample.sides for name in ("accuracy", *_ENDS)]
    first = ["accuracy", "low", "high", "paired_accuracy", "paired_low", "paired_high", *sides]
    over = [f"over{baseline}{end}" for baseline in ("", "_chance") for end in ("", "_low", "_high")]
    last = ["outside", "tied", *over[:3], "p", "p_holm", "compared", "verdict"]
    last += [*over[3:], "p_chance", "p_holm_chance", "verdict_chance", HOLM_LEAST]
    last += ["prompts", "pairs", "clusters"]
    table = table.reindex(columns=["model", "reading", *first, *last, "note"])
    return table.fillna({"compared": "", "verdict": "", "verdict_chance": "", "note": ""})


def readings_of(
    sample: Sample,
    answers: pd.DataFrame,
    options: pd.DataFrame,
    changed: pd.DataFrame | None = None,
) -> dict[str, pd.DataFrame]:
    """The readings of one model, and the forced choices after changed prompts, if measured."""
    scored = sample.scored(options)
    of_sample = answers[answers["prompt_id"].isin(sample.prompts["prompt_id"])]
    readings = {
        FREE: free_choice(of_sample),
        FORCED: forced_choice(scored),
        MEDIAN: median_choice(scored),
    }
    if changed is None:
        return readings
    free = changed[changed["change"] == "content-free"]
    if len(free):
        keys = ["prompt_id", "option"]
        prior = free.groupby(keys)["relative_probability"].mean().rename("prior")
        readings[CONTENT_FREE] = content_free_choice(
            scored, scored.join(prior, on=keys)["prior"].set_axis(scored.index)
        )
    others = changed[changed["change"] != "content-free"]
    for (kind, what), rows in others.groupby(["change", "what"], sort=False):
        name = SWAPPED if kind == "swapped" else f"{WITHOUT}{what}"
        readings[name] = forced_choice(sample.scored(rows))
    return readings


def change_row(
    sample: Sample, readings: Mapping[str, pd.DataFrame], changed: str
) -> dict[str, object]:
    """What a change of prompts, named by its reading, does to one model's forced choices.

    difference, low, high and p: the mean difference in accuracy, changed minus unchanged
    (`cluster_mean`); changed, changed_low, changed_high: the share of prompts whose choice differs
    (`proportions`); prompts, clusters and note.
    """
    choices = readings[FORCED].join(readings[changed].add_suffix("_changed"), how="inner")
    rows = sample.prompts[["prompt_id", "unit", "weight"]].merge(
        choices, left_on="prompt_id", right_index=True
    )
    rows = rows.assign(
        over=rows["credit_changed"] - rows["credit"],
        credit=(rows["chosen"] != rows["chosen_changed"]).astype(float),
    )
    change, share = mean_over(rows), share_of(rows, "unit", "changed", "changed_")
    return {
        **{"difference": change.mean, "low": change.low, "high": change.high, "p": change.p},
        **{**share, "prompts": change.trials, "clusters": change.clusters, "note": change.note},
    }


def _row(sample: Sample, choices: pd.DataFrame) -> dict[str, object]:
    of_sample = sample.prompts.assign(credit=sample.prompts["prompt_id"].map(choices["credit"]))
    judged = of_sample[of_sample["credit"].notna()]
    if judged.empty:
        return {"prompts": 0, "pairs": 0, "clusters": 0}
    chosen, weights = choices.loc[judged["prompt_id"]], judged["weight"].to_numpy(dtype=float)
    split = of_sample["credit"].isna() | of_sample["pair_id"].isin(alone(sample.prompts))
    whole = judged[~judged["pair_id"].isin(of_sample.loc[split, "pair_id"])]
    by_pair = whole.groupby("pair_id", sort=False)
    pairs = by_pair.agg(
        credit=("credit", "prod"), weight=("weight", "first"), unit=("unit", "first")
    )
    shares: dict[str, object] = {
        name: np.average(chosen[name].to_numpy(dtype=float), weights=weights)
        for name in ("outside", "tied")
        if name in chosen
    }
    of_groups = {"paired": pairs, **{side: judged[judged["side"] == side] for side in sample.sides}}
    for name, rows in of_groups.items():
        if len(rows):
            cluster = "unit" if sample.cluster else None
            shares |= share_of(rows, cluster, f"{name}_accuracy", f"{name}_")
    clusters = judged["unit"].nunique()
    counts = {"prompts": len(judged), "pairs": len(pairs), "clusters": clusters}
    mean = _mean_over_units(judged, value="credit")
    accuracy = {"accuracy": mean.mean, "low": mean.low, "high": mean.high, "note": mean.note}
    return {**shares, **accuracy, **counts}


def _over(sample: Sample, credit: pd.Series, baseline: pd.Series) -> ClusterMean:
    """The accuracy minus that of a baseline, between what these prompts allow, with its test."""
    prompts = sample.prompts[["prompt_id", "unit", "weight"]]
    rows = prompts.assign(over=prompts["prompt_id"].map(credit - baseline))
    bounds = -float(baseline.max()), 1 - float(baseline.min())
    return _mean_over_units(rows, value="over", bounds=bounds, against=0.0)


def _lacking(reading: str, choices: pd.DataFrame) -> str:
    """Why prompts have no credit in a reading, and how many; empty if all have one."""
    has_credit = choices["credit"].notna()
    if has_credit.all():
        return ""
    counted = f"{(~has_credit).sum()} of {len(has_credit)} prompts " if has_credit.any() else ""
    if reading == MEDIAN:
        needs = f"an option needs at least {ALIKE} prompts of its phrasing in other clusters"
        return f"{counted}not calibrated: {needs}"
    return f"{counted}not judged" if counted else "no prompt was judged"


def joined(*notes: object) -> str:
    """Different notes, one after the other."""
    return "; ".join(dict.fromkeys(str(note) for note in notes if note))


def share_of(rows: pd.DataFrame, cluster: str | None, name: str, ends: str = "") -> dict[str, Any]:
    """The weighted mean of the column credit, from 0 to 1, with its interval (`proportions`).

    Without `cluster`, trials are independent; `ends` stands before low and high in the names of the
    interval's ends.
    """
    table = proportions(rows, values=["credit"], by=[], cluster=cluster, weight="weight")
    names = {"share": name, "low": f"{ends}low", "high": f"{ends}high", "note": "note"}
    return {names[of]: value for of, value in table.iloc[0].items() if of in names}


def corrected(rows: Sequence[Mapping[str, object]]) -> pd.DataFrame:
    """Rows with p and clusters as a table with p_holm, corrected over all, and p_holm_least."""
    table = pd.DataFrame(rows)
    least = [least_p(int(clusters)) for clusters in table["clusters"]]
    table = holm(table.assign(**{LEAST: least}), family="rows")
    return table.drop(columns=["family", "family_size"])


def in_words(table: pd.DataFrame) -> str:
    """A sentence for each baseline: for how many models each reading differs from it."""
    read = table[table["verdict"] != ""]
    verdicts = {str(read["compared"].iloc[0]): "verdict", CHANCE: "verdict_chance"}
    sentences = []
    for compared, column in verdicts.items():
        told = [
            f"{reading}: {_counted(rows[column].tolist(), compared)}"
            for reading, rows in read.groupby("reading", sort=False)
        ]
        sentences.append(f"Compared with {compared}: {'; '.join(told)}.")
    return " ".join(sentences)


def _counted(verdicts: Sequence[str], compared: str) -> str:
    """What the verdicts on several models say, or that on the only one."""
    if set(verdicts) == {UNTESTED}:
        return UNTESTED
    if len(verdicts) == 1:
        (only,) = verdicts
        return f"no difference from {compared} shown" if only == EQUAL else f"{only} {compared}"
    above, below, untested = map(verdicts.count, (ABOVE, BELOW, UNTESTED))
    said = f"above {compared} for {above} of {len(verdicts)} models, below for {below}"
    return f"{said}, not tested for {untested}" if untested else said


def _verdict(p: float, over: float) -> str:
    if np.isnan(p):
        return UNTESTED
    if p >= SIGNIFICANT:
        return EQUAL
    return ABOVE if over > 0 else BELOW
