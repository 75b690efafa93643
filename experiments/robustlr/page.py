"""The page of the study of RobustLR: its sections, tables and figures."""

from functools import partial

import pandas as pd

from interp.analysis.segments import SUM, decisive_table
from interp.console import counted
from interp.report.figures.bars import decisive_segments
from interp.report.page import FigureItem, Report, Section, TableItem
from interp.studies.folder import StudyFolder
from interp_experiments.findings import named_in_brief, named_in_full
from interp_experiments.robustlr import figures, system, tables
from interp_experiments.robustlr.comparisons import comparisons, kinds
from interp_experiments.robustlr.learning import maker_of
from interp_experiments.robustlr.results import (
    BARE,
    DISTRACTORS,
    IN_DOMAIN,
    SETS,
    SHORT,
    Results,
    read_results,
)
from interp_experiments.robustlr.tables import (
    feature_table,
    guess_table,
    size_table,
    training_sizes,
)
from interp_experiments.scaffold import paper_report

THEORIES = (
    "theories: how many each set has; low and high: 95% interval, with the theory as the unit"
)

COUNTED = 300
"""Theories of the training set All whose features are counted."""

NAMES = {
    "accuracy": "for a count: share of statements whose label the best guess from it alone names",
    "score": "for answers: f1 or consistency; for a sentence: what an attribution method gives it",
    "theory": "facts and rules that a statement is judged by; with its variants a group",
    "side": "which member of its group a prompt is, such as base or neg1",
    "base": "the theory of a group whose edits or paraphrases the others are",
    "C-CS": "contrast set: minimal edits by conjunction; D-CS: by disjunction; N-CS: by negation",
    "C-ES": "equivalence set: paraphrases by contraposition; D1-ES: one head for two rules; D2-ES: "
    "one body",
    "conj": "edits by and; disj: by or; neg: by not; conj+neg: by both",
    "f1": "weighted F1 of the answers to a theory and its variants, averaged over theories; f1 "
    "rounded is rounded by theory first, as the authors' code does it",
    "consistency": "share of theories whose answers are all right",
    "baseline": "a constant guess; two of these know the label of each theory's base",
    "Unknown": "neither the statement nor its negation follows",
    "distractors": "facts and rules that decide nothing",
    "proof": "the facts and rules that prove the statement or its negation",
    "hit": "share of prompts where a sentence of the proof has the largest score; chance: the "
    "expected share for a random order",
    "auc": "probability that a sentence of the proof has a larger score than another sentence",
}
"""Words of the report's page."""


def report_of(folder: StudyFolder) -> Report:
    """The report, from what the study has on disk."""
    results = read_results(folder)
    rows = results.rows[SETS]
    theories, sets = rows["pair_id"].nunique(), rows["set"].nunique()
    compared = comparisons(results.rows)
    seed = folder.record.options.get("seed", 0)
    return paper_report(
        folder,
        title="RobustLR",
        text=(
            f"{counted(len(results.models), 'model')} on {counted(sets, 'set')} with "
            f"{theories:,} theories in all, {_each(rows)} a set, each with its variants. "
            "Scores are weighted F1 of the answers to a theory and its variants, averaged over "
            "theories; a theory is consistent if all of its answers are right. Intervals are "
            "95%; they and the tests take the theory as the unit. Tables of scores include "
            "constant-guess baselines. Published numbers have separate rows; they were "
            "measured on other theories."
        ),
        findings=finding_section(results, compared),
        sections=(
            contrast_section(results),
            group_section(results),
            equivalence_section(results),
            label_section(results),
            *in_domain_sections(results),
            *proof_sections(results),
            *distractor_sections(results),
            *size_sections(results),
            feature_section(seed if isinstance(seed, int) else 0),
        ),
        answer="\n\n".join(named_in_brief(results.models, kinds(compared))),
        prompts=results.prompts,
        answers=results.answers,
        about_prompts="Those of the evaluation sets, without distractors.",
        names=NAMES,
        paper="Sanyal, Liao and Ren (2022): RobustLR: A Diagnostic Benchmark for Evaluating "
        "Logical Robustness of Deductive Reasoners.",
    )


def finding_section(results: Results, compared: pd.DataFrame) -> Section:
    """The findings of the comparisons that were named in advance."""
    return Section(
        "Findings",
        "\n\n".join(named_in_full(results.models, kinds(compared))),
        (
            TableItem(
                "comparisons",
                "Differences of weighted F1 that were named in advance",
                compared,
                "The best constant guess for a set is the label that scores highest if every "
                "statement gets it, chosen set by set among the three labels. All sets of a mean "
                "count "
                "the same. clusters: theories; in the bare test split statements, each with only "
                "the "
                "sentences that decide it, so that its F1 is the share of right answers.",
            ),
        ),
    )


def _each(rows: pd.DataFrame) -> str:
    """How many theories a set has, as in a sentence."""
    sizes = rows.groupby("set")["pair_id"].nunique()
    low, high = sizes.min(), sizes.max()
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def contrast_section(results: Results) -> Section:
    """Tables 2 and 5."""
    rows = results.rows[SETS]
    return Section(
        "Logical contrast sets",
        "A base theory and its minimal edits by conjunction (C-CS), disjunction (D-CS) and "
        "negation (N-CS).",
        (
            TableItem(
                "contrast",
                "Weighted F1 of the contrast sets (Tables 2 and 5)",
                tables.sets(rows, "contrast", 2, 5),
                "; ".join([THEORIES, *results.notes]),
            ),
            TableItem(
                "scores",
                "Every score of every set, with intervals",
                tables.scores(rows),
                "f1_rounded is rounded as the authors' code does it: by theory, then the mean.",
            ),
            *(
                TableItem(
                    f"{kind}_without_unknown",
                    f"The {kind} sets without the instances whose label is Unknown (Table 6)",
                    tables.without_unknown(rows, kind),
                    "The measured models know the third answer; the published one was trained "
                    "without it where it says so.",
                )
                for kind in tables.SETS
            ),
        ),
    )


def group_section(results: Results) -> Section:
    """Figure 4, Tables 14 to 16."""
    by_operator = tables.operators(results.rows[SETS])
    return Section(
        "Groups of edits",
        "What an edit adds to the base: conj, disj, neg, or conj or disj with negation.",
        (
            FigureItem(
                "figure4_groups",
                "Weighted F1 by group of edits (Figure 4)",
                lambda: figures.operators(_measured(by_operator)),
                "n counts theories.",
            ),
            TableItem(
                "groups",
                "By set and group (Tables 14 to 16)",
                tables.groups(results.rows[SETS]),
                "theories: how many each score averages.",
            ),
            TableItem("operators", "By group, over all contrast sets", by_operator),
        ),
    )


def equivalence_section(results: Results) -> Section:
    """Tables 4 and 5."""
    return Section(
        "Logical equivalence sets",
        "A theory and its paraphrase by contraposition (C-ES), by one head for two rules (D1-ES) "
        "and by one body (D2-ES).",
        (
            TableItem(
                "equivalence",
                "Weighted F1 of the equivalence sets (Tables 4 and 5)",
                tables.sets(results.rows[SETS], "equivalence", 4, 5),
                f"{THEORIES}. The paper gives RoBERTa's C-ES as 0.79 in Table 4 and as 0.40 in "
                "Table 5; the first is shown.",
            ),
        ),
    )


def label_section(results: Results) -> Section:
    """Tables 17 to 22."""
    rows = results.rows[SETS]
    title = "Weighted F1 of the instances of each label"
    return Section(
        "Labels",
        "With the instances of one label only, a theory's weighted F1 is that label's F1, and "
        "precision is 1 whatever the answers: a model that always gives the label has 1.",
        (
            TableItem(
                "contrast_labels",
                f"{title}, contrast sets (Tables 17, 19 and 21)",
                tables.labels(rows, "contrast", 17, 19, 21),
            ),
            TableItem(
                "equivalence_labels",
                f"{title}, equivalence sets (Tables 18, 20 and 22)",
                tables.labels(rows, "equivalence", 18, 20, 22),
            ),
        ),
    )


def in_domain_sections(results: Results) -> list[Section]:
    """Table 3, and the same with shorter theories."""
    columns = {
        "nothing else": BARE,
        f"up to {system.SHORT} sentences": SHORT,
        tables.WHOLE: IN_DOMAIN,
    }
    asked = {
        column: results.rows[stage] for column, stage in columns.items() if stage in results.rows
    }
    if not asked:
        return []
    table = TableItem(
        "in_domain",
        "Weighted F1 of the test split (Table 3), by what a theory holds besides what decides",
        tables.in_domain(asked),
        "Over all instances together, since training sets have no groups of variants. Published "
        "models were trained on whole theories.",
    )
    return [Section("In-domain", "Statements of the test split of All.", (table,))]


def proof_sections(results: Results) -> list[Section]:
    """Whether attributions find what proves a statement."""
    if results.found.empty:
        return []
    table = decisive_table(results.found, ["outcome"])
    summed = table[table["reading"].isin([SUM, ""])]
    items = (
        FigureItem(
            "proof",
            "Does an attribution find the proof?",
            lambda: decisive_segments(summed, hue="outcome"),
            "Sums over tokens. Length and position are controls; the line is chance.",
        ),
        TableItem("proof", "By outcome", table),
        TableItem("proof_by_label", "By label", decisive_table(results.found, ["gold"])),
    )
    return [
        Section(
            "Is the proof looked at?",
            f"Statements of the test split of All, each with its own theory: what decides it and "
            f"up to {system.SHORT} other sentences. The facts and rules of all minimal proofs are "
            "known. A hit is a prompt where one of them has the largest absolute score; the AUC "
            "is the "
            "probability that one of them has a larger score than another sentence. A statement "
            "whose label is Unknown has no proof; prompts of which every sentence is part of a "
            "proof "
            "are left out.",
            items,
        )
    ]


def distractor_sections(results: Results) -> list[Section]:
    """Figure 6, if the long theories were asked."""
    if DISTRACTORS not in results.rows:
        return []
    table = tables.distractors(
        {
            "no distractors": results.rows[SETS],
            "distractors": results.rows[DISTRACTORS],
        }
    )
    items = (
        FigureItem(
            "figure6_distractors",
            "Weighted F1 without and with distractors (Figure 6)",
            lambda: figures.distractors(_measured(table)),
            "n counts theories.",
        ),
        TableItem("distractors", "Every score without and with distractors", table),
        TableItem(
            "contrast_with_distractors",
            "Weighted F1 of the contrast sets with distractors",
            tables.sets(results.rows[DISTRACTORS], "contrast"),
        ),
        TableItem(
            "equivalence_with_distractors",
            "Weighted F1 of the equivalence sets with distractors",
            tables.sets(results.rows[DISTRACTORS], "equivalence"),
        ),
    )
    return [Section("Distractors", "Facts and rules that are not needed.", items)]


def size_sections(results: Results) -> list[Section]:
    """Figure 5, if models were trained on sets of several sizes."""
    table = size_table(results.rows[SETS], training_sizes(results.models))
    if table.empty:
        return []
    drawn = [
        FigureItem(
            f"figure5_sizes_{place}",
            f"Weighted F1 by the size of the training set {train_set}: {begun} (Figure 5)",
            partial(figures.sizes, rows),
            "Whiskers: 95%, with the theory as the unit.",
        )
        for place, ((begun, train_set), rows) in enumerate(
            table.groupby(["begun_as", "train_set"], sort=False), start=1
        )
    ]
    return [
        Section(
            "Size of the training set",
            "Models that began alike, by their records of training.",
            (*drawn, TableItem("sizes", "Every score by the size of the training set", table)),
        )
    ]


def feature_section(seed: int) -> Section:
    """Figure 8."""
    maker = maker_of("All", "train", seed, None)
    counted_ = feature_table([one for index in range(COUNTED) for one in maker.group(index)])
    return Section(
        "Counts that predict nothing",
        f"Counts in {COUNTED} theories of the training set All, each with six statements. If a "
        "count gave the label away, its lines would differ.",
        (
            FigureItem(
                "figure8_features",
                "Labels by statistical feature (Figure 8)",
                lambda: figures.features(counted_),
                "Grey: the instances of each value, as a share of those of the most frequent.",
            ),
            TableItem(
                "feature_guesses",
                "How often the best guess from a count alone is right",
                guess_table(counted_),
                "gain: above the share of the most frequent label.",
            ),
            TableItem("features", "Labels by count", counted_),
        ),
    )


def _measured(table: pd.DataFrame) -> pd.DataFrame:
    return table[table["source"] == "measured"]
