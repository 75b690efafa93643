"""The sample, and how often models answer correctly: by side, rule, group, phrasing and filter.

Shares and means describe the whole data set: each prompt counts with its weight. Tests and
intervals are over entity pairs, because answers to prompts about one entity are alike.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import pandas as pd
from matplotlib.axes import Axes

from interp.extend import statistics
from interp.extend.cautions import said_outside
from interp.extend.estimates import TEXT, Estimated, Share, Table, column
from interp.extend.figures import grouped_bars, interval_points, matrix, say_if_nothing_is_shown
from interp.extend.page import FigureItem, Section, TableItem
from interp.extend.prompts import Contrast
from interp.extend.results import notes_without_answer
from interp_experiments.rulebreakers.prompts import SIDES
from interp_experiments.rulebreakers.results import CLUSTER, WEIGHT, Results
from interp_experiments.rulebreakers.system import NAMED
from interp_experiments.rulebreakers.templates import NEGATIONS, PHRASINGS, RULES
from interp_experiments.scaffold import in_order

_ORDER: Mapping[str, Sequence[str]] = {
    "rule": RULES,
    "entity_group": ("geographical", "categorical"),
    "verb": tuple(NEGATIONS),
    "phrasing": tuple(phrasing.id for phrasing in PHRASINGS),
    "question_verb": tuple(dict.fromkeys(phrasing.verb for phrasing in PHRASINGS)),
}

_ENDS = ("low", "high")
_SIDES = {side: side.replace("_", "-") for side in SIDES}
_WHISKERS = "Whiskers: 95% intervals, Gaffke's bound over entity pairs."
_POINTS = f"Points: share of prompts answered correctly; n: pairs. {_WHISKERS}"


BY_GROUP = Table(
    name="accuracy_by_group",
    title="Accuracy by rule and entity group",
    text="Pairs are weighted to represent the data set.",
    by=["model", "rule", "entity_group", "measure"],
    measured="answers",
    numbers=[Share("accuracy", "right answers", "share", of="correct", ends=("low", "high"))],
    trials="pairs",
    key="pair_id",
    more=[
        column("rule", TEXT, "mt: modus tollens; ds: disjunctive syllogism"),
        column("entity_group", TEXT, "geographical (cities) or categorical"),
        column("measure", TEXT, "paired (both sides are right), or the side that is counted"),
    ],
)
"""Paired accuracy and that of each side; other tables have other factors in `by`, or none."""


def accuracies(results: Results, *factors: str) -> Estimated:
    """The numbers of `BY_GROUP` by model and these factors, in the paper's order."""
    pairs = results.judged(*factors)
    kept = [name for name in pairs if name not in ("paired", *SIDES)]
    trials = pairs.melt(kept, ["paired", *SIDES], "measure", "correct")
    trials["cluster"] = pd.factorize(trials[CLUSTER])[0]
    order = {"model": results.models, **{name: _ORDER[name] for name in factors}}
    return Estimated(replace(BY_GROUP, by=["model", *factors, "measure"]), in_order(trials, order))


def accuracy(results: Results, *factors: str) -> pd.DataFrame:
    """The table of `accuracies`."""
    return accuracies(results, *factors).frame


def composition(results: Results) -> pd.DataFrame:
    """The composition of the sample, one row per rule and entity group (Figure 2)."""
    factors = ["rule", "entity_group"]
    drawn, kept = (
        prompts.drop_duplicates("pair_id").groupby(factors)
        for prompts in (results.drawn, results.prompts)
    )
    counts = {"entity_pairs": kept[CLUSTER].nunique(), "pairs_drawn": drawn.size()}
    counts |= {"pairs_kept": kept.size(), "data_set": kept[WEIGHT].sum().round()}
    table = pd.DataFrame(counts).fillna(0.0)
    table["data_set_share"] = table["data_set"] / table["data_set"].sum()
    table = table.assign(weight=kept[WEIGHT].mean()).astype(dict.fromkeys(counts, int))
    order = {name: _ORDER[name] for name in factors}
    return in_order(table.reset_index(), order).reset_index(drop=True)


def sample_section(results: Results, parameters: TableItem) -> Section:
    """The sample, and the models asked (Figure 2, Appendix H)."""
    return Section(
        "Sample",
        "A study with a limit draws about equally many pairs for each combination of rule and "
        "entity group, whatever their numbers in the data set. In results that are not broken "
        "down by rule and group, each combination is weighted by data_set_share.",
        (
            TableItem(
                "composition",
                "Composition of the sample (Figure 2)",
                composition(results),
                "weight: pairs in the data set per pair drawn. data_set: pairs in the data set "
                "that the kept pairs represent. Cities that at least one model in the study does "
                "not complete as asked are excluded for all (Section 4.1), so adding a model may "
                "change these numbers.",
            ),
            parameters,
        ),
    )


def accuracy_section(results: Results) -> Section:
    """Figures 3 and 4."""
    by_side, by_group = accuracy(results), accuracies(results, "rule", "entity_group")
    said = said_outside(results.cautions)
    sides = by_side[by_side["measure"].isin(SIDES)]
    sides = sides.assign(measure=sides["measure"].map(_SIDES))
    return Section(
        "Accuracy",
        "A pair counts as recognized if the rulebreaker is rejected and its counterpart is "
        "accepted (formula 1); random answers would recognize a quarter.",
        (
            FigureItem(
                "figure4_accuracy",
                "Accuracy by side (Figure 4)",
                lambda: _dots(sides, hue="measure"),
                _POINTS,
            ),
            FigureItem(
                "figure3_paired_accuracy",
                "Paired accuracy, overall and by rule and entity group (Figure 3)",
                partial(_draw_groups, by_group.frame, by_side),
                f"Bars: share of pairs with both sides correct. {_WHISKERS} Overall is weighted to "
                "the data set. Dotted line: random answers.",
            ),
            TableItem(
                "accuracy",
                "Accuracy by model (formulas 1 to 3)",
                by_side,
                "; ".join(notes_without_answer(results.answers, said=said)),
            ),
            by_group.item,
            TableItem("accuracy_by_verb", "Accuracy by verb", accuracy(results, "verb")),
        ),
    )


def _draw_groups(table: pd.DataFrame, overall: pd.DataFrame) -> Axes:
    rules = table["rule"].replace({"mt": "modus tollens", "ds": "disjunctive syllogism"})
    by_group = table.assign(group=rules + ", " + table["entity_group"])
    bars = pd.concat([overall.assign(group="overall"), by_group], ignore_index=True)
    bars = bars[bars["measure"] == "paired"]
    # Break the line after the owner, since whole names would not fit below a group of bars.
    bars = bars.assign(model=bars["model"].str.replace("/", "/\n", n=1))
    ax = grouped_bars(bars, x="model", y="accuracy", hue="group", n="pairs", interval=_ENDS)
    ax.axhline(0.25, color="black", linewidth=0.8, linestyle=":")
    say_if_nothing_is_shown(ax, bars, _ENDS, null=0.25)
    ax.set_ylim(0, 1)
    ax.set_ylabel("paired accuracy")
    return ax


def _dots(table: pd.DataFrame, *, hue: str) -> Axes:
    ax = interval_points(table, x="accuracy", y="model", hue=hue, n="pairs", interval=_ENDS)
    ax.set_xlim(-0.02, 1.02)
    return ax


def contrasts(results: Results) -> pd.DataFrame:
    """Weighted differences in paired accuracy, as computed by `contrast_table`."""
    pairs, further = results.judged(*_ORDER), (Contrast("question_verb"),)
    return statistics.contrast_table(
        pairs, named=NAMED, exploratory=further, cluster=CLUSTER, weight=WEIGHT
    )


def phrasing_section(results: Results) -> Section:
    """Figures 7 and 8."""
    by_phrasing, by_verb = accuracy(results, "phrasing"), accuracy(results, "question_verb")
    return Section(
        "Phrasings",
        "yn asks for Yes or No, tf for True or False.",
        (
            FigureItem(
                "figure7_phrasings",
                "Paired accuracy by phrasing (Figure 7)",
                partial(_draw_phrasings, by_phrasing),
                "Cells: paired accuracy with its 95% interval, clustered by entity pair.",
            ),
            *(
                FigureItem(
                    f"figure8_{side}s",
                    f"Accuracy on {name}s by the question's verb (Figure 8)",
                    partial(_draw_verbs, by_verb, side=side),
                    _POINTS,
                )
                for side, name in _SIDES.items()
            ),
            TableItem("accuracy_by_phrasing", "Accuracy by phrasing", by_phrasing),
            TableItem("accuracy_by_question_verb", "Accuracy by the question's verb", by_verb),
        ),
    )


def _draw_phrasings(table: pd.DataFrame) -> Axes:
    shown = table[table["measure"] == "paired"].rename(columns={"accuracy": "paired_accuracy"})
    ax = matrix(shown, x="phrasing", y="model", value="paired_accuracy", n="pairs", interval=_ENDS)
    ax.set_ylabel("model")
    return ax


def _draw_verbs(table: pd.DataFrame, *, side: str) -> Axes:
    ax = _dots(table[table["measure"] == side], hue="question_verb")
    ax.set_xlabel(f"accuracy on {_SIDES[side]}s")
    return ax
