"""The questions of plan.md, answered from the folders of ask.py: python questions.py [FOLDER].

Writes questions.csv beside this file, with p corrected over the questions that were planned
together, and the picture of README.md.
"""

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt

from interp.extend import figures, statistics

KEYS = ["pair_id", "entity_b", "entity_group", "weight"]
NUMBERS = ["question", "estimate", "low", "high", "p", "pairs", "clusters"]
SIDES = ["rulebreaker", "non_rulebreaker"]


def by_side(prompts: pd.DataFrame, values: pd.Series) -> pd.DataFrame:
    """A number of each prompt, by pair: a column for each side, and the columns of `KEYS`."""
    table = prompts.assign(value=prompts["prompt_id"].map(values).astype(float))
    wide = table.pivot(index=KEYS, columns="side", values="value").reset_index()
    return wide.assign(difference=wide[SIDES[1]] - wide[SIDES[0]])


def positive(options: pd.DataFrame, value: str) -> pd.Series:
    """That value of the answer Yes or True, by prompt."""
    return options[options["option"].isin(("Yes", "True"))].set_index("prompt_id")[value]


def mean(question: str, pairs: pd.DataFrame, how: Callable = statistics.cluster_mean) -> dict:
    """A question about the mean difference within pairs, with interval and test over entities."""
    found = how(pairs, value="difference", cluster="entity_b", weight="weight")
    numbers = found.mean, found.low, found.high, found.p, found.trials, found.clusters
    return dict(zip(NUMBERS, (question, *numbers), strict=True))


def told_apart(folder: Path) -> list[dict]:
    """The concordance, and how much of it the premises make, as `interp evaluate` says them."""
    whole = pd.read_csv(folder / "told_apart.csv").iloc[0]
    bare = pd.read_csv(folder / "told_apart_without.csv").iloc[1]
    counts = [whole["pairs"], whole["clusters"]]
    share = [whole[name] for name in ("concordance", "low", "high", "p")]
    gain = [-bare[f"difference{end}"] for end in ("", "_high", "_low")]
    rows = (
        ["concordance", *share, *counts],
        ["concordance minus that without premises", *gain, bare["p"], *counts],
    )
    return [dict(zip(NUMBERS, row, strict=True)) for row in rows]


def familiarity(right: pd.DataFrame) -> dict:
    """Whether recognized cities are more familiar: tested with ten of them or more, as anywhere."""
    cities = right[right["entity_group"] == "geographical"]
    found = {"question": "familiarity of recognized cities minus that of others"}
    recognized = cities.loc[cities[SIDES].all(axis="columns"), "entity_b"].nunique()
    if recognized >= statistics.FEWEST:
        raise SystemExit(f"{recognized} cities are recognized: measure their familiarity")
    few = f"not tested: {recognized} of {cities['entity_b'].nunique()} cities are recognized"
    return {**found, "pairs": len(cities), "note": few}


def attention(leaning: pd.DataFrame, prompts: pd.DataFrame, scores: pd.DataFrame) -> dict:
    """The rank correlation across entity pairs of the score ratio (Table 2) with the margin."""
    each = (scores["score"] / scores["tokens"]).groupby([scores["prompt_id"], scores["segment"]])
    mean = each.first().unstack()
    ratio = by_side(prompts, mean["premise2"] / mean["premise1"])
    both = ratio.assign(ratio=ratio[SIDES].mean(axis="columns")).merge(
        leaning[["pair_id", "difference"]], on="pair_id", suffixes=("_ratio", "")
    )
    found = statistics.spearman(
        *both.groupby("entity_b")[["ratio", "difference"]].mean().to_numpy().T
    )
    question = "rho of the attention ratio and the margin"
    row = question, found.rho, found.low, found.high, found.p, len(both), found.n
    return dict(zip(NUMBERS, row, strict=True))


def questions(folder: Path) -> pd.DataFrame:
    """One row per question, in the order of plan.md."""

    def read(step: str, name: str) -> pd.DataFrame:
        return pd.read_parquet(folder / step / f"{name}.parquet")

    prompts, answers = read("answers", "prompts"), read("answers", "answers")
    options = read("answers", "option_probabilities")
    right = by_side(prompts, answers.set_index("prompt_id")["correct"])
    leaning = by_side(prompts, positive(options, "relative_probability"))
    sure = by_side(prompts, positive(options, "probability"))
    accepted = (leaning[SIDES] > 0.5).all(axis="columns")
    rows = [
        mean("accuracy on counterparts minus that on rulebreakers", right),
        *told_apart(folder / "answers"),
        mean("confidence if right minus if wrong", sure[accepted]),
        familiarity(right),
        attention(leaning, read("attention", "prompts"), read("attention", "segment_scores")),
    ]
    table = statistics.holm(pd.DataFrame(rows), family="questions")
    table.insert(0, "number", range(1, len(table) + 1))
    again, confirmed = told_apart(folder / "confirmation")
    others = statistics.holm(
        pd.DataFrame([again | {"p": np.nan}, confirmed]), family="confirmation"
    )
    not_planned = pd.DataFrame(exploratory(folder)).drop(columns="p").assign(family="exploratory")
    shots = statistics.holm(with_shots(folder / "shots"), family="four shots")
    studies = statistics.holm(other_studies(folder), family="other studies")
    rows = pd.concat(
        [table, others.assign(number=[2, 3]), not_planned, shots, studies], ignore_index=True
    )
    return rows.astype(dict.fromkeys(("number", "pairs", "clusters", "family_size"), "Int64"))


def with_shots(folder: Path) -> pd.DataFrame:
    """Questions 7 to 9: what `told_apart` says, and the accuracy against chance between them."""
    concordance, gain = told_apart(folder)
    accuracy = pd.read_csv(folder / "accuracy_by_reading.csv").iloc[0]
    names = ["accuracy", "low", "high", "p_chance", "pairs", "clusters"]
    row = dict(zip(NUMBERS, ["accuracy", *accuracy[names]], strict=True))
    return pd.DataFrame([concordance, row, gain]).assign(number=[7, 8, 9])


def other_studies(folder: Path) -> pd.DataFrame:
    """The concordance in the prompts of each of the other three studies."""
    rows = []
    for name in ("logical-forms", "robustlr", "rulebench"):
        whole = pd.read_csv(folder / name / "told_apart.csv").iloc[0]
        numbers = whole[["concordance", "low", "high", "p", "pairs", "clusters"]]
        rows.append(dict(zip(NUMBERS, [f"concordance, {name}", *numbers], strict=True)))
    return pd.DataFrame(rows)


def premises_part(folder: Path) -> pd.DataFrame:
    """By pair, whether its sides are told apart (a tie: 0.5), and minus that without premises."""
    prompts = pd.read_parquet(folder / "prompts.parquet")
    changed = pd.read_parquet(folder / "changed_options.parquet")
    whole, bare = (
        by_side(prompts, positive(options, "relative_probability"))
        for options in (
            pd.read_parquet(folder / "option_probabilities.parquet"),
            changed[changed["change"] == "without"],
        )
    )
    apart, apart_without = (np.heaviside(pairs["difference"], 0.5) for pairs in (whole, bare))
    return whole.assign(apart=apart, difference=apart - apart_without)


def exploratory(folder: Path) -> list[dict]:
    """The premises' part in both samples together, and the concordance by group in the second."""
    first, others = (premises_part(folder / step) for step in ("answers", "confirmation"))
    both = pd.concat([first, others])
    share = both.assign(difference=(1 + both["difference"]) / 2)
    row = mean("both samples: the same difference", share, statistics.mean_concordance)
    row |= {end: 2 * row[end] - 1 for end in ("estimate", "low", "high")}
    return [row] + [
        mean(
            f"other pairs: concordance, {group}",
            pairs.assign(difference=pairs["apart"]),
            statistics.mean_concordance,
        )
        for group, pairs in others.groupby("entity_group")
    ]


def draw(folder: Path, file: Path) -> None:
    """How much more each pair's counterpart is accepted, with the premises and without them."""
    samples = {"asked first": "answers", "other pairs": "confirmation"}
    with figures.house_style():
        canvas, panels = plt.subplots(
            2, 2, figsize=(7.2, 4.6), sharex="row", sharey=True, layout="constrained"
        )
        for axes, (sample, step) in zip(panels, samples.items(), strict=True):
            prompts = pd.read_parquet(folder / step / "prompts.parquet")
            changed = pd.read_parquet(folder / step / "changed_options.parquet")
            shown = {
                "with both premises": pd.read_parquet(
                    folder / step / "option_probabilities.parquet"
                ),
                "without premises": changed[changed["change"] == "without"],
            }
            for ax, (title, options) in zip(axes, shown.items(), strict=True):
                pairs = by_side(prompts, positive(options, "relative_probability"))
                gap = pairs["difference"].sort_values(ignore_index=True)
                ax.bar(gap.index, gap, width=1.0, color=np.where(gap > 0, "#3465a4", "#c4572e"))
                ax.axhline(0, color="black", linewidth=0.6)
                told = f"{title}: {(gap > 0).sum()} right, {(gap < 0).sum()} wrong"
                ax.set_title(told, fontsize="medium")
                ax.set_xlabel(f"{len(gap)} pairs, sorted ({sample})")
        canvas.supylabel("P(accept the valid conclusion) - P(accept the false one)", fontsize=9)
        canvas.savefig(file, dpi=150)


if __name__ == "__main__":
    runs, docs = Path(*sys.argv[1:] or ["runs/qwen"]), Path(__file__).parent
    found = questions(runs)
    found.to_csv(docs / "questions.csv", index=False, lineterminator="\n")
    sys.stdout.write(found.to_string() + "\n")
    draw(runs, docs.parent / "images" / "decides.png")
