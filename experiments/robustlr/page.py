"""The page of the study of RobustLR: its sections, tables and figures."""

from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, NullLocator, StrMethodFormatter

from interp import StudyFolder
from interp.extend import page
from interp.extend.figures import grouped_bars, lines
from interp_experiments import scaffold
from interp_experiments.robustlr import system, tables
from interp_experiments.robustlr.findings import comparisons, finding_section, first_screen
from interp_experiments.robustlr.language import LABELS
from interp_experiments.robustlr.results import (
    BARE,
    DISTRACTORS,
    IN_DOMAIN,
    SCORES,
    SETS,
    SHORT,
    Results,
    read_results,
)

THEORIES_HAVE = "theories_have"
"""The factor that tells the stages apart."""

NAMED = {
    SETS: "no distractors",
    DISTRACTORS: "distractors",
    BARE: "nothing else",
    SHORT: f"up to {system.SHORT} sentences",
    IN_DOMAIN: tables.WHOLE,
}
"""What the theories of each stage have besides the sentences that decide their statements, as in
headings of tables."""

THEORIES = "theories: number in each set; brackets: 95% interval, with the theory as the unit"

NAMES = {
    "accuracy": "share of statements with the right answer",
    "score": "for answers: f1 or consistency; for a sentence: its score by an attribution method",
    "theory": "the facts and rules by which a statement is judged; a group is a theory with its "
    "variants",
    "side": "a prompt's role in its group, such as base or neg1",
    "base": "the theory of a group that the others edit or paraphrase",
    "C-CS": "contrast set: minimal edits by conjunction; D-CS: by disjunction; N-CS: by negation",
    "C-ES": "equivalence set: paraphrases by contraposition; D1-ES: by merging the heads of two "
    "rules; D2-ES: by merging their bodies",
    "bare test split": "statements of the test split of All, each asked with only the sentences "
    "that decide it",
    "baseline": "a guess without a model: always one label, always the label of the "
    "theory's base, or always its negation",
    "Unknown": "neither the statement nor its negation follows",
    "proof": "the facts and rules that prove the statement or its negation",
    "hit": "share of prompts in which a sentence of the proof has the largest score; chance: the "
    "expected share for a random order",
    "auc": "probability that a sentence of the proof has a larger score than another sentence",
}
"""Terms explained on the report's page."""


def report_of(folder: StudyFolder) -> page.Report:
    """The report page, made from the files in the study's folder."""
    results = read_results(folder)
    compared = comparisons(results.rows)
    begun = {stage: run for stage, run in folder.runs.items() if run.tables()}
    asked = page.stacked(begun, THEORIES_HAVE, NAMED)
    return page.Report(
        title="RobustLR",
        text=(
            "Scores are weighted F1 of the answers to a theory and its variants, averaged over "
            "theories; a theory is consistent if all of its answers are right. Intervals are "
            "95%. The unit of intervals and tests is the theory. Tables of scores include "
            "constant guesses. Published numbers are in separate rows; they were measured on "
            "other theories."
        ),
        glance=first_screen(results, compared),
        sections=(
            finding_section(compared),
            set_section(results),
            part_section(results),
            scaffold.choice_section(results.answers, results.prompts, results.options, None),
            *in_domain_sections(results),
            *proof_sections(results),
            *distractor_sections(results),
            *size_sections(results),
        ),
        browser=page.study_browser(folder, *asked, prefixed=NAMED),
        pairs={THEORIES_HAVE: NAMED[SETS]},
        names=NAMES,
        paper="Sanyal, Liao and Ren (2022): RobustLR: A Diagnostic Benchmark for Evaluating "
        "Logical Robustness of Deductive Reasoners.",
        record=folder.provenance(),
        problems=tuple(folder.problems()),
    )


def set_section(results: Results) -> page.Section:
    """Tables 2 and 4 to 6."""
    rows = results.rows[SETS]
    notes = {
        "contrast": "; ".join([THEORIES, *results.notes]),
        "equivalence": f"{THEORIES}. The paper gives RoBERTa's C-ES as 0.79 in Table 4 and as 0.40 "
        "in Table 5; Table 4's value is shown.",
    }
    return page.Section(
        "Contrast and equivalence sets",
        "A base theory and its minimal edits, or its paraphrase.",
        (
            *(
                _sets_item(
                    kind,
                    f"Weighted F1 of the {kind} sets (Tables {printed} and 5)",
                    tables.sets(rows, kind, printed, 5),
                    notes[kind],
                )
                for kind, printed in zip(tables.SETS, (2, 4), strict=True)
            ),
            page.TableItem(
                SCORES.name,
                SCORES.title,
                tables.scores(rows),
                "f1_rounded: each theory's F1 is rounded before the mean, as in the authors' code.",
            ),
            *(
                _sets_item(
                    f"{kind}_without_unknown",
                    f"The {kind} sets without the instances whose label is Unknown (Table 6)",
                    tables.sets(rows[rows["gold"] != "Unknown"], kind, 6),
                    "Measured models can answer Unknown; one published model was trained "
                    "without that label, as its row says.",
                )
                for kind in tables.SETS
            ),
        ),
    )


def part_section(results: Results) -> page.Section:
    """Figure 4 and Tables 14 to 22."""
    rows, printed = results.rows[SETS], {"contrast": (17, 19, 21), "equivalence": (18, 20, 22)}
    by_operator = tables.operators(rows)
    return page.Section(
        "Groups of edits, and labels",
        "An edit adds conjunction (conj), disjunction (disj) or negation (neg) to the base; edits "
        "in the groups conj+neg and disj+neg add both. With instances of only one label, a "
        "theory's weighted F1 is that label's F1, and its precision is always 1: a model that "
        "always gives the label has an F1 of 1.",
        (
            page.FigureItem(
                "figure4_groups",
                "Weighted F1 by group of edits (Figure 4)",
                lambda: grouped_bars(_measured(by_operator), x="group", hue="model", **_BARS),
                "n counts theories.",
            ),
            page.TableItem(
                "groups",
                "By set and group (Tables 14 to 16)",
                tables.parts(rows, "contrast", "group", tables.GROUPS, 14, 15, 16),
                "theories: number of theories that each score is averaged over.",
            ),
            page.TableItem("operators", "By group, over all contrast sets", by_operator),
            *(
                page.TableItem(
                    f"{kind}_labels",
                    f"By label, {kind} sets (Tables {'{}, {} and {}'.format(*printed[kind])})",
                    tables.parts(rows, kind, "gold", LABELS, *printed[kind]),
                )
                for kind in tables.SETS
            ),
        ),
    )


def in_domain_sections(results: Results) -> list[page.Section]:
    """Table 3, also with shorter theories."""
    stages = (BARE, SHORT, IN_DOMAIN)
    of_stages = {NAMED[stage]: results.rows[stage] for stage in stages if stage in results.rows}
    if not of_stages:
        return []
    table = page.TableItem(
        "in_domain",
        "Weighted F1 of the test split (Table 3), by number of sentences that decide nothing",
        tables.in_domain(of_stages),
        "Scores are computed over all instances together, since training sets have no groups of "
        "variants. Published models were trained on whole theories.",
        pairs={THEORIES_HAVE: NAMED[IN_DOMAIN]},
    )
    return [page.Section("In-domain", "The test split of the training set All.", (table,))]


def proof_sections(results: Results) -> list[page.Section]:
    """Whether attributions find the proof of a statement."""
    if results.found.empty:
        return []
    section = page.Section(
        "Do attributions find the proof?",
        "Statements of the test split of All, each with its own theory: the sentences that "
        f"decide it and up to {system.SHORT} others. The facts and rules of all minimal "
        "proofs are known. A statement whose label is Unknown has no proof; prompts in which "
        "every sentence is part of a proof are left out.",
        scaffold.decisive_items(
            results.found,
            "pair_id",
            units="theories",
            name="proof",
            title="Does an attribution find the proof?",
            by=("gold", "label"),
        ),
    )
    return [scaffold.about_pairs(section, **{THEORIES_HAVE: NAMED[SHORT]})]


def distractor_sections(results: Results) -> list[page.Section]:
    """Figure 6, if the long theories were measured."""
    if DISTRACTORS not in results.rows:
        return []
    table = tables.distractors({NAMED[stage]: results.rows[stage] for stage in (SETS, DISTRACTORS)})
    drawn = _measured(table[table["set"].isin(tables.SETS["contrast"])])
    figure = page.FigureItem(
        "figure6_distractors",
        "Weighted F1 without and with distractors (Figure 6)",
        lambda: scaffold.bars_by_model(drawn, x="set", hue=THEORIES_HAVE, **_BARS),
        "n counts theories.",
    )
    every = page.TableItem("distractors", "Every score without and with distractors", table)
    text = "Distractors are facts and rules that do not decide the statement."
    return [page.Section("Distractors", text, (figure, every))]


def size_sections(results: Results) -> list[page.Section]:
    """Figure 5, if models were trained on sets of several sizes."""
    table = tables.size_table(results.rows[SETS], tables.training_sizes(results.places))
    if table.empty:
        return []
    figure = page.FigureItem(
        "figure5_sizes",
        "Weighted F1 by size of the training set (Figure 5)",
        lambda: size_lines(table),
        "Bands: 95% intervals, with the theory as the unit.",
    )
    every = page.TableItem("sizes", "Every score by size of the training set", table)
    text = "Models trained from the same initial weights, according to their training records."
    return [page.Section("Size of the training set", text, (figure, every))]


def _sets_item(name: str, title: str, table: pd.DataFrame, note: str) -> page.TableItem:
    """An item for a table of scores; the page shows each interval in brackets after its score."""
    scores = [column for column in table.columns if f"{column}_low" in table]
    shown = table.drop(columns=[f"{score}_{end}" for score in scores for end in ("low", "high")])
    for score in scores:
        ends = table[[score, f"{score}_low", f"{score}_high"]].to_numpy(dtype=float)
        shown[score] = [page.with_interval(*map(float, row)) for row in ends]
    return page.TableItem(name, title, table, note, display=shown)


_F1 = "weighted F1"
_BARS: dict[str, Any] = {"y": _F1, "n": "theories", "interval": ("f1_low", "f1_high")}
"""The column and the axis of scores in figures."""


def _measured(table: pd.DataFrame) -> pd.DataFrame:
    return table[table["source"] == "measured"].rename(columns={"f1": _F1})


def size_lines(table: pd.DataFrame) -> Axes:
    """Scores of models that began alike (`tables.size_table`) by training statements (Figure 5)."""
    which = table["sets"] + ", " + table["begun_as"] + ", " + table["train_set"]
    shown = table.rename(columns={"f1": _F1}).assign(line=which)
    ax = lines(shown, x="statements", hue="line", **_BARS)
    ax.set_xscale("log")
    ax.xaxis.set_major_locator(FixedLocator(sorted(table["statements"].unique())))
    ax.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.set_ylim(0, 1.05)
    return ax
