"""The page of the study of RuleBench: its sections, tables and figures."""

from collections.abc import Iterator, Sequence
from functools import partial

import pandas as pd

from interp.analysis.segments import SUM, decisive_table
from interp.console import counted
from interp.report.figures.bars import decisive_segments
from interp.report.page import FigureItem, Report, Section, TableItem
from interp.studies.folder import StudyFolder
from interp_experiments.findings import named_in_brief, named_in_full
from interp_experiments.rulebench import figures, tables
from interp_experiments.rulebench.comparisons import comparisons, kinds, kinds_tested
from interp_experiments.rulebench.results import (
    OUTCOMES,
    RULE,
    Results,
    read_results,
)
from interp_experiments.rulebench.tables import Tuning, tunings
from interp_experiments.scaffold import in_order, measured_and_published, paper_report

COUNTED = (
    "The table Every setting has the interval of each number, and how many questions and golden "
    "rules it covers."
)
"""Where to look, since the paper's tables have accuracies only."""

NAMES = {
    "accuracy": "share of texts with the correct answer; a text without any counts as wrong",
    "score": "a mean of accuracies for a dimension; what an attribution method gives a rule",
    "golden rule": "the one rule that fits the question; golden rules: how many different ones the "
    "questions are about",
    "noise rule": "any other rule that is shown with it",
    "rules": "how many are shown: no, the golden one, few or all",
    "form": "rules in natural language, or in first-order logic",
    "shots": "whether demonstrations come before the question",
    "thought": "whether the model should reason step by step before it answers",
    "version": "counterfactual: rules whose conclusions were changed, and the correct answers with "
    "them; else factual",
    "side": "the setting of a question; a group is one question under all of them",
    "unparsed": "a text in which no answer was found; refused: one that declines to answer",
    "triggering error": "an answer that follows a noise rule; in kinds of failure, a text that "
    "applies "
    "a rule other than the golden one",
    "execution error": "a wrong answer that follows no noise rule; in kinds of failure, a text "
    "that "
    "applies the golden rule",
    "hit": "a prompt whose golden rule has the largest score among its rules; chance: the expected "
    "share for a random order",
    "auc": "share of noise rules with a smaller score than the golden one",
    "long tail": "questions with the rarest answers of their set",
}
"""Words of the report's page."""


def report_of(folder: StudyFolder) -> Report:
    """The report, from what the study has on disk."""
    results = read_results(folder)
    compared = comparisons(results)
    return paper_report(
        folder,
        title="RuleBench",
        text=(
            f"{counted(len(results.models), 'model')}, {counted(len(results.texts), 'text')}. "
            f"{_sizes(results.texts)} Accuracy is the share of texts with the correct answer; "
            "one without an answer is wrong. Intervals are 95%; they and the tests take the "
            "golden rule as the unit, since answers to questions about one rule are alike. "
            "Published numbers come from the paper's own data and parsers."
        ),
        findings=finding_section(results, compared),
        sections=(
            dimension_section(results),
            quantity_section(results),
            form_section(results),
            thought_section(results),
            version_section(results),
            behaviour_section(results),
            *attribution_sections(results),
            *tuning_sections(results, tunings(results.models)),
        ),
        answer="\n\n".join(named_in_brief(results.models, kinds_tested(compared))),
        prompts=results.prompts,
        answers=results.answers,
        names=NAMES,
        paper="Sun et al. (2024): Beyond Instruction Following: Evaluating Inferential Rule "
        "Following of Large Language Models.",
        problems=left_out(folder),
    )


def _sizes(texts: pd.DataFrame) -> str:
    """How many questions each set has, and about how many rules."""
    counts = texts.groupby("set", sort=False)[["pair_id", RULE]].nunique()
    parts = [
        f"{name}: {counted(int(questions), 'question')} about {counted(int(rules), 'golden rule')}"
        for name, (questions, rules) in counts.iterrows()
    ]
    return f"{'; '.join(parts)}."


def finding_section(results: Results, compared: pd.DataFrame) -> Section:
    """The findings of the comparisons that were named in advance."""
    return Section(
        "Findings",
        "\n\n".join(named_in_full(results.models, kinds(compared))),
        (
            TableItem(
                "comparisons",
                "Differences of accuracy that were named in advance",
                compared,
                "Each is over the questions that were asked both times; a text without an answer "
                "counts "
                "as wrong. clusters: golden rules.",
            ),
        ),
    )


def left_out(folder: StudyFolder) -> list[str]:
    """Lines on data that were omitted as broken; stages that lack the same data share a line."""
    lines = [run.record.run.data.get("left_out", "") for run in folder.runs.values()]
    return [f"left out of the data: {line}" for line in dict.fromkeys(filter(None, lines))]


def dimension_section(results: Results) -> Section:
    """Figure 2, and every number in it."""
    cells = tables.accuracy(results)
    table = tables.dimensions(results)
    failed = tables.not_measured(results)
    return Section(
        "Five dimensions",
        "Each dimension is a mean accuracy over combinations of set and setting, which count the "
        "same: executing "
        "with the golden rule alone, triggering with all rules, formal with rules in logic, "
        "applying with a chain of thought, counterfactual with changed conclusions. n counts "
        "questions.",
        (
            FigureItem(
                "figure2_dimensions",
                "Dimensions of rule following (Figure 2)",
                lambda: figures.radar(table),
            ),
            TableItem("dimensions", "Dimensions of rule following", table),
            TableItem("accuracy", "Every setting", cells),
            *([TableItem("not_measured", "Not measured", failed)] if len(failed) else []),
        ),
    )


def quantity_section(results: Results) -> Section:
    """Figure 4 and Table 4."""
    table = tables.rule_quantities(tables.accuracy(results))
    return Section(
        "Do rules help?",
        "Without demonstrations, in natural language. n counts questions.",
        (
            *_bars(
                "figure4_rules",
                "Accuracy by rules that are shown (Figure 4)",
                table,
                y="accuracy",
                hue="rules",
            ),
            TableItem(
                "table4",
                "All questions, and those with the rarest answers (Table 4)",
                measured_and_published(tables.long_tail(results), tables.published(4)),
                f"The rarest answers make up at least {tables.LONG_TAIL:.0%} of a set. n counts "
                "questions.",
            ),
        ),
    )


def form_section(results: Results) -> Section:
    """Table 1."""
    measured = tables.rule_forms(tables.accuracy(results))
    return Section(
        "Natural language or logic?",
        "Without demonstrations, by set and by rules that are shown.",
        (
            TableItem(
                "table1",
                "Accuracy by the form of the rules (Table 1)",
                measured_and_published(measured, tables.published(1)),
                COUNTED,
            ),
        ),
    )


def thought_section(results: Results) -> Section:
    """Figure 5."""
    table = tables.thoughts(tables.accuracy(results))
    return Section(
        "Does a chain of thought help?",
        "With demonstrations. n counts questions.",
        _bars(
            "figure5_thought",
            "Accuracy with and without chain of thought (Figure 5)",
            table,
            y="accuracy",
            hue="setting",
        ),
    )


def version_section(results: Results) -> Section:
    """Table 2."""
    measured = tables.versions(tables.accuracy(results))
    return Section(
        "Are rules followed against what is known?",
        "With demonstrations and a chain of thought, by set and by rules that are shown.",
        (
            TableItem(
                "table2",
                "Accuracy with factual and counterfactual rules (Table 2)",
                measured_and_published(measured, tables.published(2)),
                COUNTED,
            ),
        ),
    )


def behaviour_section(results: Results) -> Section:
    """Figure 6."""
    table = tables.failures(results)
    return Section(
        "How do models fail?",
        "A failure is a triggering error if the text applies a rule other than the golden one, and "
        "an execution error if it applies the golden one; otherwise it names no rule, or several. "
        "Few rules, "
        "with demonstrations and a chain of thought; counterfactual if a set has such rules.",
        (
            *_bars(
                "figure6_failures",
                "Kinds of failure (Figure 6)",
                table,
                y="share_of_failures",
                hue="behaviour",
            ),
            TableItem("failures", "Kinds of failure as shares of all failures", table),
        ),
    )


def attribution_sections(results: Results) -> Iterator[Section]:
    """Whether attributions find the golden rule."""
    if results.found.empty:
        return
    by_outcome = decisive_table(in_order(results.found, {"outcome": OUTCOMES}), ["outcome"])
    summed = by_outcome[by_outcome["reading"].isin([SUM, ""])]
    yield Section(
        "Is the golden rule looked at?",
        "Attributions of the first token of answers at once, with few rules. A hit is a prompt "
        "whose golden rule has the largest score among its rules; the AUC is the share of noise "
        "rules with a smaller score. A wrong answer that a noise rule gives is a triggering error, "
        "any other an execution error; it is only wrong in sets whose rules do not say their "
        "answers.",
        (
            FigureItem(
                "golden_rule",
                "Does an attribution find the golden rule?",
                lambda: decisive_segments(summed, hue="outcome"),
                "Sums over tokens. Length and position are controls; the line is chance.",
            ),
            TableItem("golden_rule", "By outcome", by_outcome),
            TableItem("golden_rule_by_set", "By set", decisive_table(results.found, ["set"])),
        ),
    )


def tuning_sections(results: Results, tuned: Sequence[Tuning]) -> Iterator[Section]:
    """Tables 3 and 5, if models were measured before and after tuning."""
    if not tuned:
        return
    cells = tables.accuracy(results)
    on_string_game = tables.tuning(cells, [one for one in tuned if one.is_string_game])
    in_domain = tables.tuning(cells, [one for one in tuned if not one.is_string_game])
    yield Section(
        "What does tuning change?",
        "Models before (base) and after tuning on questions with golden and noise rules (irft).",
        (
            TableItem(
                "table3",
                "Tuned on StringGame: few rules, without demonstrations (Table 3)",
                measured_and_published(
                    tables.tuned_on_string_game(on_string_game), tables.published(3)
                ),
                COUNTED,
            ),
            TableItem(
                "table5",
                "Tuned on questions of a set: golden and few rules (Table 5)",
                measured_and_published(tables.tuned_in_domain(in_domain), tables.published(5)),
                f"trained_on of measured rows names the questions; only the column of that set is "
                f"in-domain. {COUNTED}",
            ),
            TableItem("tuning", "Every setting before and after", tables.tuning(cells, tuned)),
        ),
    )


def _bars(
    name: str, title: str, table: pd.DataFrame, *, y: str, hue: str
) -> tuple[FigureItem, ...]:
    """A figure of `figures.bars_by_set`, if the table has rows."""
    draw = partial(figures.bars_by_set, table, y=y, hue=hue)
    return () if table.empty else (FigureItem(name, title, draw),)
