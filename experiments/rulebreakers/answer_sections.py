"""Sections of the report on answers: sample, accuracy, sensitivity, contrasts, entity pairs."""

from collections.abc import Callable
from functools import partial

import pandas as pd

from interp.analysis.accuracy import notes_without_answer
from interp.analysis.cautions.caution import said_outside
from interp.report.page import FigureItem, Section, TableItem
from interp.statistics.decisions import DIFFERENT, OPEN, SIGNIFICANT, SMALLER, SMALLEST
from interp_experiments.rulebreakers import figures
from interp_experiments.rulebreakers.answer_tables import (
    accuracy,
    competence,
    composition,
    confidence,
    confidence_differences,
    contrasts,
    filters,
    phrasings,
    sensitivity,
)
from interp_experiments.rulebreakers.entity_tables import entities, extremes, names_within
from interp_experiments.rulebreakers.prompts import SIDES
from interp_experiments.rulebreakers.results import CLUSTER, Results
from interp_experiments.scaffold import choice_section

WHISKERS = "Whiskers: 95% intervals, Gaffke's bound over entity pairs."
"""Caption on the whiskers in figures of accuracy."""


def marks(results: Results) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """A function that adds † to the names of models that cannot be asked, for use in figures."""
    models = competence(results)
    marked = {name: f"{name} †" for name in models.loc[~models["competent"], "model"]}
    return lambda table: table.assign(model=table["model"].replace(marked))


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
                "that the kept pairs represent; entity pairs that at least one model does not "
                "complete as asked are excluded.",
            ),
            parameters,
            TableItem(
                "competence",
                "Models that can be asked this way",
                competence(results),
                "no_answer: share of prompts whose most likely token is neither option; "
                "accepted: accuracy on non-rulebreakers. A model is marked † in figures if "
                "no_answer is at least 0.5 or accepted is below 0.5, because its answers then "
                "say nothing about rulebreakers.",
            ),
            TableItem(
                "filters",
                "Paired accuracy without cities not completed as asked (Section 4.1)",
                filters(results),
                '"all models" and the rest of this page exclude the cities that at least one model '
                "in the study fails to complete, so adding a model may change these numbers. "
                '"own" excludes the cities that the model itself fails to complete. left_out: '
                "number of excluded cities, some of which may not be in the sample.",
            ),
        ),
    )


def accuracy_section(results: Results) -> Section:
    """Figures 3 and 4."""
    by_side, expected = accuracy(results), sensitivity(results)
    by_group = accuracy(results, "rule", "entity_group")
    mark = marks(results)
    return Section(
        "Accuracy",
        "A pair counts as recognized if the rulebreaker is rejected and its counterpart is "
        "accepted (formula 1); random answers would recognize a quarter.",
        (
            FigureItem(
                "figure4_accuracy",
                "Accuracy by side (Figure 4)",
                lambda: figures.accuracy_by_side(mark(by_side)),
                f"Points: share of prompts answered correctly; n: pairs. {WHISKERS}",
            ),
            FigureItem(
                "figure3_paired_accuracy",
                "Paired accuracy, overall and by rule and entity group (Figure 3)",
                lambda: figures.paired_accuracy_by_group(mark(by_group), mark(expected)),
                f"Bars: share of pairs with both sides correct. {WHISKERS} Overall is weighted to "
                "the data set. Solid line: paired accuracy expected if the same number of "
                "positive answers is spread equally over both sides. Diamond: product of both "
                "sides' accuracies, which is expected if they are independent. Dotted line: "
                "random answers.",
            ),
            TableItem(
                "accuracy",
                "Accuracy by model (formulas 1 to 3)",
                by_side,
                "; ".join(
                    notes_without_answer(results.answers, said=said_outside(results.cautions))
                ),
            ),
            TableItem("accuracy_by_group", "Accuracy by rule and entity group", by_group),
            TableItem("accuracy_by_verb", "Accuracy by verb", accuracy(results, "verb")),
        ),
    )


def reading_section(results: Results) -> Section:
    """Forced and calibrated choices beside the answers."""
    return choice_section(results.answers, results.prompts, results.options, CLUSTER)


def sensitivity_section(results: Results) -> Section:
    """How well the models distinguish the sides of a pair, and Figure 5."""
    table, mark = confidence(results), marks(results)
    dots = confidence_differences(results)
    return Section(
        "Sensitivity and confidence",
        "Does a model distinguish the sides of a pair, wherever it draws the line between Yes "
        "and No? It does if concordance and AUROC are above 0.5 and d' is above 0. A bias above "
        "0 leans towards No; a bias below 0 leans towards Yes. A model with high concordance and "
        "low paired accuracy notices rulebreakers but accepts them anyway.",
        (
            TableItem(
                "sensitivity",
                "How well the sides are distinguished",
                sensitivity(results),
                "concordance: share of pairs in which the relative probability of the positive "
                "answer, c+ / (c+ + c-), is higher on the non-rulebreaker. Its interval and the "
                "p of its difference from one half come from the same bootstrap over entity "
                "pairs. auroc: the same share for any two prompts, one from each side. "
                "chance_yes_rate: paired accuracy expected from the rate of positive answers if "
                "the model ignores the side. independent_sides: paired accuracy expected from "
                "both sides' accuracies if the answers to them are independent.",
            ),
            FigureItem(
                "figure5_confidence",
                "Confidence in positive answers, right and wrong (Figure 5)",
                lambda: figures.confidence(mark(table), mark(dots)),
                "Dots: mean difference for one entity pair, over pairs of prompts both of which "
                "are answered positively; area: number of pairs. Large points: mean over pairs; "
                "whiskers: 95% interval, clustered by entity pair; n: entity pairs. p: "
                "studentized bootstrap over entity pairs, corrected by Holm's method over the "
                "models. Above 0, a model is more confident when the answer is right.",
            ),
            TableItem(
                "confidence",
                "Confidence in positive answers",
                table,
                "difference: non-rulebreaker, where the positive answer is right (formula 6), "
                "minus rulebreaker, where it is wrong (7), within pairs whose sides are both "
                "answered positively; share: these pairs as a share of all pairs. Columns that "
                "end in _paper are Welch's test over all positive answers, as in the paper: it "
                "treats prompts about one entity as independent and compares different entities.",
            ),
        ),
    )


def contrast_section(results: Results) -> Section:
    """Differences in paired accuracy, starting with the contrasts that were named in advance."""
    return Section(
        "Contrasts",
        "Differences in paired accuracy, weighted to the data set. The confirmatory contrasts "
        "were named in the code before any run and are corrected together (p_holm), so the "
        "chance of any false finding among them is at most 5%. The others are exploratory, as is "
        "the rest of this page. Tests and intervals take entity pairs as the unit. detectable is "
        "the difference that a test at 5% finds with a power of 80%. Two one-sided tests, each "
        "at 5% and not corrected, exclude all differences below excluded_below and above "
        f"excluded_above. The smallest difference of interest is {SMALLEST:g}, which is one pair "
        f"in ten. verdict: {DIFFERENT} if p_holm (for exploratory contrasts, p) is below "
        f"{SIGNIFICANT:g}; otherwise {SMALLER} if the differences of interest are excluded, and "
        f"{OPEN} if not.",
        (
            TableItem(
                "contrasts",
                "Rules, groups, phrasings and models compared",
                contrasts(results),
                "For phrasings and for the question's verbs, the difference is the best minus "
                "the worst, with a simultaneous interval for all pairs. model is blank for "
                "contrasts between models; p_holm is blank for exploratory contrasts, which are "
                "not corrected.",
            ),
        ),
    )


def phrasing_section(results: Results) -> Section:
    """Figures 7 and 8."""
    by_phrasing, spread = accuracy(results, "phrasing"), phrasings(results)
    by_verb, mark = accuracy(results, "question_verb"), marks(results)
    names = dict(zip(SIDES, ("rulebreakers", "non_rulebreakers"), strict=True))
    return Section(
        "Phrasings",
        "yn asks for Yes or No, tf for True or False.",
        (
            FigureItem(
                "figure7_phrasings",
                "Paired accuracy by phrasing (Figure 7)",
                lambda: figures.paired_accuracy_by_phrasing(mark(by_phrasing), mark(spread)),
                "Cells: paired accuracy with its 95% interval, clustered by entity pair. range: "
                "highest minus lowest value; SD: standard deviation over phrasings.",
            ),
            *(
                FigureItem(
                    f"figure8_{name}",
                    f"Accuracy on {name.replace('_', '-')} by the question's verb (Figure 8)",
                    partial(figures.accuracy_by_question_verb, mark(by_verb), side=side),
                    f"Points: share of prompts answered correctly; n: pairs. {WHISKERS}",
                )
                for side, name in names.items()
            ),
            TableItem("phrasings", "Paired accuracy over phrasings (Appendix D)", spread),
            TableItem("accuracy_by_phrasing", "Accuracy by phrasing", by_phrasing),
            TableItem("accuracy_by_question_verb", "Accuracy by the question's verb", by_verb),
        ),
    )


def entity_section(results: Results) -> Section:
    """Appendix G."""
    table = entities(results)
    ends = extremes(table)
    return Section(
        "Entity pairs",
        "Which entity pairs are answered well? Does it help if the name of a city contains that "
        "of its country?",
        (
            TableItem(
                "entity_extremes",
                "Entity pairs with the highest and the lowest estimates (Appendix G)",
                ends,
                f"{overlap(ends)} Estimates are empirical Bayes: the fewer trials an entity pair "
                "has, the more its estimate shrinks towards the overall mean. Intervals are 95%. "
                "If all estimates are equal, entity pairs differ no more than by chance. apart: "
                "number of entity pairs at the other end whose intervals do not overlap. trials: "
                "pairs of prompts times models; effective_trials: number of trials, corrected "
                "for the correlation of a model's answers about one entity pair.",
            ),
            TableItem(
                "names_within",
                "Cities that contain their country's name (Appendix G)",
                names_within(results),
                "With fewer than ten such cities, the test has no power and is omitted.",
            ),
            TableItem(
                "entities", "All entity pairs", table, "familiarity is defined for cities only."
            ),
        ),
    )


def overlap(ends: pd.DataFrame) -> str:
    """A sentence on how far the intervals at the two ends of `extremes` overlap."""
    most, least = (ends[ends["end"] == end] for end in ("most", "least"))
    pairs, apart = len(most) * len(least), int(most["apart"].sum())
    if ends.empty:
        return "All estimates are equal, so no entity pair is listed."
    if not apart:
        return "All intervals at one end overlap those at the other, so this is not a ranking."
    return (
        f"In {apart:,} of {pairs:,} comparisons between the ends, intervals do not overlap; the "
        "other pairs are not ranked."
    )
