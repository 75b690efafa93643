"""The page of the study of RuleBench: its sections, tables and figures."""

from collections.abc import Iterator, Sequence

import pandas as pd
from matplotlib.axes import Axes

from interp import StudyFolder
from interp.extend import counted, page
from interp.extend.page import FigureItem, Report, Section, TableItem, study_browser
from interp_experiments import scaffold
from interp_experiments.findings import in_brief, named_section, opening
from interp_experiments.rulebench import tables
from interp_experiments.rulebench.items import STRING_GAME
from interp_experiments.rulebench.results import (
    MODELS,
    OUTCOMES,
    RULE,
    SETTING,
    Results,
    comparisons,
    kinds_tested,
    read_results,
)

COUNTED = (
    "The table 'Every setting' gives the interval of each number, and counts questions and golden "
    "rules."
)
"""A note for tables that have only accuracies, as in the paper."""

NAMES = {
    "accuracy": "share of texts with the correct answer; a text without an answer counts as wrong",
    "score": "for a dimension: a mean of accuracies; for a rule: its attribution score",
    "golden rule": "the only rule that fits the question; golden rules: number of different "
    "golden rules",
    "noise rule": "any other rule shown with the golden rule",
    **{name: text for name, text in SETTING.items() if name != "set"},
    "side": "the setting of a question; a group consists of one question under all settings",
    "unparsed": "a text in which no answer was found; refused: a text that declines to answer",
    "triggering error": "an answer that follows a noise rule; among kinds of failure, a text that "
    "applies a rule other than the golden one",
    "execution error": "a wrong answer that follows no noise rule; among kinds of failure, a text "
    "that applies the golden rule",
    "hit": "a prompt whose golden rule has the largest score among its rules; chance: the expected "
    "share for a random order",
    "auc": "share of noise rules with a smaller score than the golden rule",
    "long tail": "questions with the rarest answers of their set",
}
"""Terms explained on the report's page."""


def report_of(folder: StudyFolder) -> Report:
    """The report page, made from the files in the study's folder."""
    results = read_results(folder)
    compared, every = comparisons(results), tables.accuracy(results)
    cells = every.frame
    return Report(
        title="RuleBench",
        text=(
            "Accuracy is the share of texts with the correct answer; "
            "a text without an answer counts as wrong. Intervals are 95%. The unit of "
            "intervals and tests is the golden rule, since answers to questions about one "
            "rule are alike. Published numbers come from the paper's own data and parsers."
        ),
        glance=first_screen(results, compared),
        sections=(
            finding_section(compared),
            dimension_section(results, every.item),
            *setting_sections(results, cells),
            *attribution_sections(results),
            *tuning_sections(cells, tables.tunings(results.places)),
        ),
        browser=study_browser(
            folder, results.prompts, results.answers, cluster=RULE, numbers=tuple(every.links())
        ),
        names=NAMES,
        paper="Sun et al. (2024): Beyond Instruction Following: Evaluating Inferential Rule "
        "Following of Large Language Models.",
        record=folder.provenance(),
        problems=(*folder.problems(), *left_out(folder)),
    )


def left_out(folder: StudyFolder) -> list[str]:
    """Messages about broken data that were omitted, one for all stages with the same omissions."""
    lines = [run.record.run.data.get("left_out", "") for run in folder.runs.values()]
    return [f"left out of the data: {line}" for line in dict.fromkeys(filter(None, lines))]


def dimension_section(results: Results, cells: TableItem) -> Section:
    """Figure 2, and every number in it, from the table of accuracies."""
    table, failed = tables.dimensions(results), tables.not_measured(results)
    return Section(
        "Five dimensions",
        "Each dimension is a mean accuracy over combinations of set and setting, which have equal "
        "weights: executing (only the golden rule), triggering (all rules), formal (rules in "
        "logic), applying (a chain of thought) and counterfactual (changed conclusions). "
        "n counts questions. A dimension of which no prompt was measured has no row.",
        (
            TableItem("dimensions", "Dimensions of rule following (Figure 2)", table),
            cells,
            *([TableItem("not_measured", "Not measured", failed)] if len(failed) else []),
        ),
    )


def setting_sections(results: Results, cells: pd.DataFrame) -> Iterator[Section]:
    """Tables 1, 2 and 4, and Figures 4 to 6."""
    shown, thoughts = tables.rule_quantities(cells), tables.thoughts(cells)
    tail = (
        f"The rarest answers make up at least {tables.LONG_TAIL:.0%} of a set. n counts questions."
    )
    yield _section(
        "Do rules help?",
        "Prompts have no demonstrations; rules are in natural language. n counts questions.",
        (4, "All questions, and those with the rarest answers", tables.long_tail(results), tail),
        before=_bars("figure4_rules", "Accuracy by rules shown (Figure 4)", shown, hue="rules"),
    )
    yield _section(
        "Natural language or logic?",
        "Prompts have no demonstrations. Columns name the set and the rules shown.",
        (1, "Accuracy by the form of the rules", tables.rule_forms(cells), COUNTED),
    )
    title = "Accuracy with and without chain of thought (Figure 5)"
    yield Section(
        "Does a chain of thought help?",
        "Prompts have demonstrations. n counts questions.",
        _bars("figure5_thought", title, thoughts, hue="setting"),
    )
    yield _section(
        "Are rules followed when they contradict known facts?",
        "Prompts have demonstrations and ask for a chain of thought. Columns name the set and the "
        "rules shown.",
        (2, "Accuracy with factual and counterfactual rules", tables.versions(cells), COUNTED),
    )
    failures, title = tables.failures(results), "Kinds of failure (Figure 6)"
    yield Section(
        "How do models fail?",
        "A failure is a triggering error if the text applies a rule other than the golden rule, "
        "and an execution error if it applies the golden rule; otherwise the text names no rule, "
        "or several. Prompts have few rules, demonstrations and a chain of thought. If a set has "
        "counterfactual prompts, only the answers to these are counted.",
        (
            *_bars("figure6_failures", title, failures, hue="behavior", y="share_of_failures"),
            TableItem("failures", "Kinds of failure as shares of all failures", failures),
        ),
    )


def attribution_sections(results: Results) -> Iterator[Section]:
    """Whether attributions find the golden rule."""
    if results.found.empty:
        return
    yield Section(
        "Do attributions find the golden rule?",
        "Attributions of the first token of direct answers, with few rules. A hit is a prompt "
        "whose golden rule has the largest score among its rules; the AUC is the share of noise "
        "rules with a smaller score. A wrong answer that a noise rule gives is a triggering "
        "error; any other wrong answer is an execution error; in sets whose rules do not state "
        "answers, a wrong answer is not classified.",
        scaffold.decisive_items(
            results.found,
            RULE,
            units="golden rules",
            name="golden_rule",
            title="Does an attribution find the golden rule?",
            by=("set", "set"),
            outcomes=OUTCOMES,
        ),
    )


def tuning_sections(cells: pd.DataFrame, tuned: pd.DataFrame) -> Iterator[Section]:
    """Tables 3 and 5, if models were measured before and after tuning."""
    if tuned.empty:
        return
    # The rules of StringGame occur in no other set.
    on_string_game = tuned["trained_on"] == STRING_GAME.name
    trained = (
        "trained_on is the set of questions that a measured model was tuned on; only the column "
        f"of that set is in-domain. {COUNTED}"
    )
    third = tables.tuned(cells, tuned[on_string_game], "few")
    fifth = tables.tuned(cells, tuned[~on_string_game], "golden", "few")
    yield _section(
        "What does tuning change?",
        "Models before (base) and after (irft) tuning on questions with golden and noise rules.",
        (3, "Tuned on StringGame: few rules, without demonstrations", third, COUNTED),
        (5, "Tuned on questions of a set: golden and few rules", fifth, trained),
    )


def _section(
    title: str,
    text: str,
    *compared: tuple[int, str, pd.DataFrame, str],
    before: Sequence[FigureItem] = (),
) -> Section:
    """Measured rows of the paper's tables, by number, with its own; a sentence where none is."""
    items = []
    for number, name, measured, note in compared:
        if measured.empty:
            text += f" Table {number} of the paper is omitted, since no measured row is comparable."
        else:
            both = scaffold.measured_and_published(measured, tables.published(number))
            items.append(
                scaffold.compared_item(f"table{number}", f"{name} (Table {number})", both, note)
            )
    return Section(title, text, (*before, *items))


def _bars(
    name: str, title: str, table: pd.DataFrame, *, hue: str, y: str = "accuracy"
) -> tuple[FigureItem, ...]:
    """Shares with their intervals by set, one panel per model; none if the table has no rows."""

    def draw() -> Axes:
        ends = ("low", "high")
        first = scaffold.bars_by_model(table, hue=hue, x="set", y=y, n="n", interval=ends)
        for ax in first.figure.axes:
            ax.set_ylim(0, 1)
            ax.tick_params(axis="x", labelsize=7)
        return first

    return (FigureItem(name, title, draw),) if len(table) else ()


def first_screen(results: Results, compared: pd.DataFrame) -> page.Glance:
    """The five dimensions of rule following (Figure 2), and results of the named comparisons."""
    tested = kinds_tested(compared) or {"Comparisons named in advance": compared}
    said = [
        in_brief(rows, f"Accuracy, {subject[:1].lower()}{subject[1:]}", ordered=subject != MODELS)
        for subject, rows in tested.items()
    ]
    question = (
        "Does a model follow the rule it is given? "
        f"{counted(len(results.models), 'model')}, {counted(len(results.texts), 'text')}; "
        f"{sizes(results.texts)}."
    )
    return opening(
        *(question, headline_numbers(results), results.cautions, results.models, said),
        leading=f"{next(iter(tables.DIMENSIONS))} score",
    )


def headline_numbers(results: Results) -> pd.DataFrame:
    """The score in each dimension or, if it was not measured, a blank cell and the reason."""
    every, parts = tables.dimensions(results), []
    for name, (does, _) in tables.DIMENSIONS.items():
        rows = every[every["dimension"] == name].set_index("model").reindex(results.models)
        rows["note"] = rows["note"].fillna(f"no prompt was measured that {does}")
        shown = rows.rename_axis("model").reset_index()
        parts.append(page.headline(shown, f"{name} score", value="score", n="n", unit="questions"))
    return pd.concat(parts, ignore_index=True)


def sizes(texts: pd.DataFrame) -> str:
    """The numbers of questions and of golden rules in each set, in words."""
    counts = texts.groupby("set", sort=False)[["pair_id", RULE]].nunique()
    return "; ".join(
        f"{name}: {counted(int(questions), 'question')} about {counted(int(rules), 'golden rule')}"
        for name, (questions, rules) in counts.iterrows()
    )


def finding_section(compared: pd.DataFrame) -> page.Section:
    """The results of the comparisons that were named in advance."""
    item = page.TableItem(
        "comparisons",
        "Differences in accuracy that were named in advance",
        compared,
        "Each comparison covers the questions asked in both conditions; a text without an answer "
        "counts as wrong. clusters: golden rules.",
    )
    return named_section(compared, item)
