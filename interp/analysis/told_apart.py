"""Whether probabilities tell prompts with different correct answers apart, and without which parts.

A model that only reads the question may tell the sides of its pairs apart too, if their questions
differ: then it has not been shown to read the premises.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from interp.analysis.cautions.caution import PART_ALONE, Caution
from interp.analysis.reading_tables import WITHOUT, Sample, joined, mean_over
from interp.analysis.readings import logs
from interp.choices import ALL_PREMISES
from interp.statistics.decisions import SIGNIFICANT
from interp.statistics.discrimination import Area, auroc, concordance, mean_concordance
from interp.statistics.resampling import apart


def side_row(sample: Sample, options: pd.DataFrame) -> dict[str, object]:
    """How well one model's probabilities tell apart prompts with different correct answers.

    Only prompts with the same phrasing are compared. A bias to one option changes nothing. auroc,
    auroc_low, auroc_high: the probability that an option's log-odds are higher on a prompt to which
    it is the correct answer than on one to which it is not, as a mean over phrasings and options
    (with two options, both have the same). concordance, low, high: the share of pairs of which the
    log-odds of the two correct answers differ in the right direction between the prompts; in a
    group, the mean over all pairs of members with different correct answers. p, of a concordance of
    one half; pairs, clusters and note. Intervals and p are clustered (`auroc` and
    `mean_concordance` of `interp.statistics.discrimination`).
    """
    scored = sample.scored(options)
    area, order = _area(scored), pair_order(scored)
    mean = mean_concordance(order, value="order", cluster="unit", weight="weight")
    return {
        **{"auroc": area.area, "auroc_low": area.low, "auroc_high": area.high},
        **{"concordance": mean.mean, "low": mean.low, "high": mean.high, "p": mean.p},
        **{"pairs": mean.trials, "clusters": mean.clusters},
        "note": joined(area.note, mean.note),
    }


def _area(scored: pd.DataFrame) -> Area:
    columns = {"score": "log_odds", "positive": "right", "cluster": "unit", "weight": "weight"}
    return auroc(scored, **columns, within=["phrasing", "option"])


def pair_order(scored: pd.DataFrame) -> pd.DataFrame:
    """For each pair or group, whether its probabilities are in the right order: 1, 0, or between.

    Two members with the same phrasing and different correct answers, a and b, are in order if the
    log-odds of a against b are higher where a is correct (`concordance`). One row per group with
    such members: pair_id, unit, weight and order (the mean over them).
    """
    columns = ["pair_id", "phrasing", "prompt_id", "gold", "unit", "weight"]
    members = scored.drop_duplicates("prompt_id")[columns].reset_index(drop=True)
    members["place"] = members.index
    two = members.merge(members, on=["pair_id", "phrasing"], suffixes=("", "_other"))
    two = two[(two["place"] < two["place_other"]) & (two["gold"] != two["gold_other"])]
    share = scored.set_index(["prompt_id", "option"])["relative_probability"].astype(float)
    log_share = logs(share)

    def odds(prompt: str) -> pd.Series:
        """The log-odds of the first correct answer against the other, on one of two prompts."""
        first, second = (
            log_share.reindex(pd.MultiIndex.from_frame(two[[prompt, gold]])).to_numpy()
            for gold in ("gold", "gold_other")
        )
        return pd.Series(first - second, two.index)

    two = two.assign(order=concordance(odds("prompt_id"), odds("prompt_id_other")))
    by_group = two.dropna(subset="order").groupby("pair_id", sort=False)
    return by_group.agg(
        unit=("unit", "first"), weight=("weight", "first"), order=("order", "mean")
    ).reset_index()


def part_rows(
    sample: Sample, options: pd.DataFrame, changed: pd.DataFrame
) -> Iterator[dict[str, Any]]:
    """How well one model tells prompts apart as they are, and without parts of them (`changed`).

    Each row has the change and what `side_row` gives for the changed prompts. p is that of a
    difference of 0; p_half that of a concordance of one half. difference, difference_low,
    difference_high: the concordance of the changed prompts minus that of the same pairs as they
    are (`mean_concordance`, between -1 and 1); auroc_difference with its ends: the
    same of the areas, with the interval of `mean_over`.
    """
    whole = side_row(sample, options)
    yield {"change": "as they are", **whole, "p": np.nan, "p_half": whole["p"]}
    for what, rows in changed[changed["change"] == "without"].groupby("what", sort=False):
        alone = side_row(sample, rows)
        same = options[options["prompt_id"].isin(rows["prompt_id"])]
        differences = _differences(*map(sample.scored, (rows, same)))
        yield {"change": f"{WITHOUT}{what}", **alone, "p_half": alone["p"], **differences}


def _differences(changed: pd.DataFrame, whole: pd.DataFrame) -> dict[str, object]:
    """What a change makes of the area and of the concordance, from the scored options of both."""
    one, other = map(_area, (changed, whole))
    # Values of clusters whose mean is the difference, and whose error is Obuchowski's.
    away = one.deviations.sub(other.deviations, fill_value=0.0)
    over = (apart(one.area, other.area) + len(away) * away).round(12)
    area = mean_over(pd.DataFrame({"unit": over.index, "over": over, "weight": 1.0}))
    areas: dict[str, object] = {
        "auroc_difference": area.mean,
        "auroc_difference_low": area.low,
        "auroc_difference_high": area.high,
    }
    pairs = pair_order(changed).merge(
        pair_order(whole)[["pair_id", "order"]], on="pair_id", suffixes=("", "_whole")
    )
    if pairs.empty:
        return {**areas, "p": np.nan}
    pairs["over"] = pairs["order"] - pairs["order_whole"]
    how = {"value": "over", "cluster": "unit", "weight": "weight"}
    mean = mean_concordance(pairs, **how, bounds=(-1.0, 1.0), against=0.0)
    names = ("difference", "difference_low", "difference_high")
    differences = np.array([mean.mean, mean.low, mean.high])
    return {**areas, **dict(zip(names, differences.round(12).tolist(), strict=True)), "p": mean.p}


def alone_cautions(
    sample: Sample, options: Mapping[str, pd.DataFrame], changed: Mapping[str, pd.DataFrame]
) -> Iterator[Caution]:
    """A caution about each model that tells the sides apart as well without any premise.

    That is: without them, its concordance is above one half, and no loss is shown (both at 5%).
    """
    for model, rows in changed.items():
        without = rows[rows["what"] == ALL_PREMISES]
        if without.empty or model not in options:
            continue
        whole, alone = part_rows(sample, options[model], without)
        apart = alone["p_half"] < SIGNIFICANT and alone["concordance"] > 1 / 2
        if apart and not (alone["p"] < SIGNIFICANT and alone["difference"] < 0):
            ends = "[{difference_low:.2f}, {difference_high:.2f}]".format_map(alone)
            text = (
                "without any premise it tells the sides of a pair apart as well (concordance "
                f"{alone['concordance']:.2f}, with them {whole['concordance']:.2f}; difference "
                f"{alone['difference']:.2f} {ends}), so nothing here shows that it reads the "
                "premises rather than a part of the prompt that differs between the sides anyway."
            )
            yield Caution(PART_ALONE, model, text, numbers={**alone, "whole": whole["concordance"]})
