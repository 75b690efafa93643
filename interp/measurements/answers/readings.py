"""Display of the readings of answers: how often each is correct, and what tells prompts apart."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import pandas as pd

from interp.analysis.reading_tables import (
    CHANCE,
    CONSTANT,
    NO_MODEL,
    SWAPPED,
    WITHOUT,
    Sample,
    change_row,
    corrected,
    in_words,
    reading_table,
    readings_of,
)
from interp.analysis.readings import CONTENT_FREE, FORCED, FREE, MEDIAN
from interp.analysis.told_apart import part_rows, side_row
from interp.measurements.given import by_model
from interp.report.glance import with_interval
from interp.report.page import TableItem, Titled, apart
from interp.statistics.decisions import corrected_over

OPTION_COLUMNS = ["model", "prompt_id", "option", "relative_probability"]
"""The columns of option_probabilities that the tables are made of."""


def reading_items(
    answers: pd.DataFrame,
    prompts: pd.DataFrame,
    options: pd.DataFrame,
    cluster: str | None = None,
    *,
    changed: pd.DataFrame | None = None,
    by: Sequence[str] = (),
) -> Iterator[TableItem]:
    """Tables about prompts that offer a choice; none if no prompt offers one.

    The first compares readings of the answers, forced and calibrated, with baselines
    (`reading_table`). If changed prompts were measured, another says what the changes do to forced
    choices (`change_row`). The next says how well prompts with different correct answers are told
    apart (`side_row`), and the last ones the same for each value of some factors. `by` are factors
    with the same value on both sides of a pair.
    """
    sample = Sample(prompts, options, cluster)
    if sample.prompts.empty:
        return
    of_model, of_answers = by_model(options), by_model(answers)
    after_change = {} if changed is None else by_model(changed)
    readings = {
        model: readings_of(sample, of_answers[model], shares, after_change.get(model))
        for model, shares in of_model.items()
    }
    yield _reading_item(sample, readings)
    rows: list[Mapping[str, object]] = [
        {"model": model, "change": name, **change_row(sample, by_reading, name)}
        for model, by_reading in readings.items()
        for name in _changes(by_reading)
    ]
    if rows:
        title = "Forced choices after changed prompts"
        yield _shown("change_table", title, rows, _CHANGED, _CHANGED_CELLS)
    rows = [{"model": model, **side_row(sample, shares)} for model, shares in of_model.items()]
    title = "Prompts with different correct answers, told apart"
    of_all = f"{title} by the options' probabilities"
    yield _shown("told_apart", of_all, rows, f"{_APART} {_P}", _APART_CELLS)
    if any(name.startswith(WITHOUT) for by_reading in readings.values() for name in by_reading):
        rows = [
            {"model": model, **row}
            for model, after in after_change.items()
            for row in part_rows(sample, of_model[model], after)
        ]
        cells = {**_APART_CELLS, "difference": ("difference", "difference_low", "difference_high")}
        of_parts = "Prompts told apart without parts of them"
        yield _shown("told_apart_without", of_parts, rows, f"{_PARTS} {_APART}", cells)
    for factor in by:
        samples = {
            str(value): Sample(subset, options, cluster)
            for value, subset in prompts.groupby(factor, sort=False)
        }
        rows = [
            {"model": model, factor: value, **side_row(some, shares)}
            for model, shares in of_model.items()
            for value, some in samples.items()
            if len(some.prompts)
        ]
        by_factor, note = f"{title}, by {factor.replace('_', ' ')}", f"{_APART_BY} {_APART} {_P}"
        yield _shown(f"told_apart_by_{factor}", by_factor, rows, note, _APART_CELLS)


def _reading_item(sample: Sample, readings: Mapping[str, Mapping[str, pd.DataFrame]]) -> TableItem:
    table = reading_table(
        sample, {(model, name): row for model, own in readings.items() for name, row in own.items()}
    )
    shown = _with_intervals(table, sample)
    title, note = "Accuracy by reading of the answer, and of baselines", _note(table, sample)
    narrow = list(_narrow(shown, sample, f"{title} (p_holm: {corrected_over([table])})"))
    return TableItem("accuracy_by_reading", title, table, note, narrow=narrow, display=shown)


def _changes(readings: Iterable[str]) -> list[str]:
    return [name for name in readings if name == SWAPPED or name.startswith(WITHOUT)]


def _shown(
    name: str,
    title: str,
    rows: Sequence[Mapping[str, object]],
    note: str,
    cells: Mapping[str, tuple[str, ...]],
) -> TableItem:
    """A table whose intervals stand behind their numbers; terminals show only these and p_holm."""
    table = corrected(rows)
    table = table[[*table.columns.drop("note"), "note"]]
    inside = {column for columns in cells.values() for column in columns}
    first = list(table)[: min(list(table).index(columns[0]) for columns in cells.values())]
    head = table[first].assign(**{name: _cells(table, *columns) for name, columns in cells.items()})
    rest = [column for column in table if column not in inside and column not in first]
    models = table["model"].unique()
    over = corrected_over([table])
    about, few = title, head.join(table["p_holm"])
    if len(models) == 1 and len(first) > 1:
        about, few = f"{title}: {models[0]}", few.drop(columns="model")
    note, narrow = f"{note} p_holm: corrected over {over}.", [(f"{about} (p_holm: {over})", few)]
    return TableItem(name, title, table, note, narrow=narrow, display=head.join(table[rest]))


_CHANGED = (
    "difference: mean accuracy of forced choices after changed prompts, minus that after the "
    "prompts as they are; changed choices: share of prompts with another choice. swapped "
    "options: the list of the options in the text in reverse order. A prompt that a change leaves "
    "as it is, or empty, is not counted."
)

_APART = (
    "Only prompts of one phrasing are compared; a bias to one option changes nothing, and 0.5 is "
    "chance. auroc: probability that the log-odds of an option are higher where it is correct, "
    "mean over phrasings and options. concordance: share of pairs in which the log-odds of the two "
    "correct answers differ in the right direction."
)

_P = "p: of a concordance of 0.5."

_PARTS = (
    "difference: concordance without the part, minus that of the same pairs as they are (p: "
    "of no difference; p_half: of a concordance of 0.5). If prompts are told apart as well "
    "without all premises, nothing shows that premises are read."
)

_APART_BY = (
    "If prompts are told apart in some rows only, or in the wrong direction in some, a word that "
    "those rows share may do it rather than the correct answer."
)

_CHANGED_CELLS = {
    "difference": ("difference", "low", "high"),
    "changed_choices": ("changed", "changed_low", "changed_high"),
}

_APART_CELLS = {
    "auroc": ("auroc", "auroc_low", "auroc_high"),
    "concordance": ("concordance", "low", "high"),
}


def _against(baseline: str) -> str:
    return f"against_{baseline.replace(' ', '_')}"


def _with_intervals(table: pd.DataFrame, sample: Sample) -> pd.DataFrame:
    # The page would link columns called accuracy to the prompts that are answered freely.
    shown = table[["model", "reading"]].assign(all_prompts=_cells(table, "accuracy", "low", "high"))
    minus = f"minus_{sample.better.replace(' ', '_')}"
    others = [*shown, "whole_pairs", minus, *map(_against, (sample.better, CHANCE)), *table]
    headings = ["whole_pairs", *apart(sample.sides, "side", others)]
    for name, heading in zip(("paired", *sample.sides), headings, strict=True):
        shown[heading] = _cells(table, *(f"{name}_{end}" for end in ("accuracy", "low", "high")))
    holm = ["p_holm"]
    shown[_against(sample.better)] = table["verdict"]
    if sample.better != CHANCE:
        # Of chance, the interval of the accuracy tells as much.
        shown[minus] = _cells(table, "over", "over_low", "over_high")
        shown[_against(CHANCE)] = table["verdict_chance"]
        holm.append("p_holm_chance")
    return shown.join(table[["outside", "tied", *holm, "prompts", "note"]])


def _narrow(shown: pd.DataFrame, sample: Sample, title: str) -> Iterator[Titled]:
    """Tables for terminals: one for each of three models, or one with more models' accuracies."""
    models = [model for model in shown["model"].unique() if model != NO_MODEL]
    if len(models) > 3:
        wide = shown.pivot(index="model", columns="reading", values="all_prompts")
        wide = wide.reindex(index=models, columns=shown["reading"].unique())
        for baseline in sample.baselines:
            wide[baseline] = str(shown.set_index("reading").at[baseline, "all_prompts"])
        yield title, wide.reset_index()
        return
    against = map(_against, dict.fromkeys([sample.better, CHANCE]))
    columns = ["reading", "all_prompts", "whole_pairs", *against]
    for model in models:
        yield f"{title}: {model}", shown.loc[shown["model"].isin([model, NO_MODEL]), columns]


def _cells(table: pd.DataFrame, *columns: str) -> list[str]:
    rows = table.reindex(columns=[*columns]).to_numpy(dtype=float)
    return [with_interval(*map(float, row)) for row in rows]


_MEANINGS = {
    FREE: "most probable token: its option; outside: share of replies that are none of the "
    "options, which count as wrong.",
    FORCED: "most probable option: a forced choice; m equally probable ones (tied) are each right "
    "with probability 1/m.",
    MEDIAN: "calibrated: median: the option whose log-odds exceed their median in the phrasing "
    "most; the median is that of other clusters, so no prompt calibrates itself.",
    CONTENT_FREE: "calibrated: content-free: the option whose share exceeds that in the same "
    "prompt without content most, as a ratio.",
    CONSTANT: "constant answer: the most frequent correct answer to such options or, if options "
    "differ by prompt, the most frequent place of the correct one.",
}


def _note(table: pd.DataFrame, sample: Sample) -> str:
    """Which readings differ from chance and the better baseline, and how to read the table."""
    parts = [in_words(table), f"p_holm: corrected over {corrected_over([table])}."]
    if sample.better != CHANCE:
        parts.append(
            "A constant answer is better than chance here, so a free or forced choice that is "
            "above chance alone does not show that prompts are read."
        )
    if sample.prompts["weight"].nunique() > 1:
        parts.append("Prompts with larger weights count more.")
    read = set(table["reading"])
    parts += [text for reading, text in _MEANINGS.items() if reading in read]
    if _changes(read):
        parts.append("without ..., swapped options: forced choices after changed prompts.")
    by_name = table[table["model"] == NO_MODEL].set_index("reading")["accuracy"]
    if by_name.get(CONSTANT, 0.0) > by_name[CHANCE] + 0.01:
        parts.append(
            "A calibration by medians assumes equally frequent correct answers; these are not."
        )
    return " ".join(parts)
