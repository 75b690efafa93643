"""The answers behind any result, for cautions: each measurement stores them in another table."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pandas as pd

from interp.analysis.cautions.answers import FORCED, read_whole
from interp.analysis.cautions.caution import Caution, ordered
from interp.analysis.cautions.collected import cautions_on
from interp.analysis.completeness import GAP_COLUMNS, adds_up, completeness_table
from interp.analysis.reading_tables import Sample
from interp.analysis.told_apart import alone_cautions
from interp.attribution.registry import DEFAULT_METHODS
from interp.errors import UserError
from interp.measuring.spec import spec_named
from interp.results.measured import ResultTables

CHANGED = "changed_options"
"""Name of the table of changed prompts."""

ANSWERED = {"answers": "predicted_token", "completions": "completion"}
"""The tables with answers, each with its column for the text that the model wrote."""

_KEYS = ["model", "prompt_id"]


def cautions_about(measured: ResultTables) -> tuple[Caution, ...]:
    """Everything that a careful reader would object to in a measurement, by severity."""
    own = _are_own(measured)
    found = cautions_on(
        measured.table("prompts"),
        answers=given_answers(measured) if own else None,
        options=_options(measured) if own else None,
        facts=measured.facts(),
        methods=_methods(measured),
        gaps=_gaps(measured),
        differences=_differences(measured) if own else {},
        cluster=measured.about.cluster,
    )
    return ordered((*found, *_read_whole(measured), *_alone(measured)))


def _alone(measured: ResultTables) -> Iterator[Caution]:
    """That models tell the sides apart without the premises, if that was measured."""
    if CHANGED not in measured.names():
        return
    options, changed = (measured.table(name) for name in ("option_probabilities", CHANGED))
    sample = Sample(measured.table("prompts"), options, measured.about.cluster)
    yield from alone_cautions(sample, by_model(options), by_model(changed))


def by_model(table: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The rows of each model."""
    return {str(model): rows for model, rows in table.groupby("model", sort=False)}


_WITH_OPTIONS = {
    "option_probabilities": "prompt_id",
    "segment_effects": "prompt_id",
    "thought_answers": "prompt_id",
    "steered": "prompt_id",
    "pairs": "pair_id",
}
"""Tables that say whether options were read as whole texts, and what their rows are about."""


def _read_whole(measured: ResultTables) -> Iterator[Caution]:
    if measured.about.parameters.get("answers") == "whole":
        return
    for name in [one for one in _WITH_OPTIONS if one in measured.names()][:1]:
        try:
            rows = measured.table(name, ["model", _WITH_OPTIONS[name], "whole"])
        except (UserError, KeyError):  # measured before options could be read whole
            return
        yield from read_whole(rows.drop_duplicates(["model", _WITH_OPTIONS[name]]))


def _methods(measured: ResultTables) -> Sequence[str]:
    if "segment_scores" not in measured.names():
        return ()
    return tuple(measured.about.parameters.get("methods", DEFAULT_METHODS))


def _gaps(measured: ResultTables) -> pd.DataFrame | None:
    """How far scores are from adding up; None if no method promises that."""
    if not any(map(adds_up, _methods(measured))):
        return None
    return completeness_table(measured.parts("segment_scores", GAP_COLUMNS))


def _differences(measured: ResultTables) -> Mapping[str, float] | None:
    """How much the sides of patched pairs differ; None if the options tell."""
    names = measured.names()
    if "pairs" not in names or "option_probabilities" in names:
        return None
    pairs = measured.table("pairs", ["model", "base_metric", "source_metric"])
    apart = (pairs["base_metric"] - pairs["source_metric"]).abs()
    medians = apart.groupby(pairs["model"], sort=False).median()
    return {str(model): float(median) for model, median in medians.items()}


def _are_own(measured: ResultTables) -> bool:
    """Whether the answers are the model's own rather than those of random weights."""
    try:
        return spec_named(measured.about.measurement).own_answers
    except UserError:  # a measurement that is no longer installed
        return True


def _options(measured: ResultTables) -> pd.DataFrame | None:
    name = "option_probabilities"
    columns = [*_KEYS, "option", "probability", "relative_probability"]
    return measured.table(name, columns) if name in measured.names() else None


JUDGED = ["model", "prompt_id", "answer", "correct", "error"]
"""Columns of `judged_answers`."""


def judged_answers(measured: ResultTables) -> pd.DataFrame:
    """Each model's answer to each prompt and whether it is correct, with `JUDGED` as columns.

    `correct` is missing if an answer was not judged, or if a prompt has an error. The answers are
    those of `given_answers`; a measurement without answers has no rows.
    """
    if not _are_own(measured):
        return pd.DataFrame(columns=JUDGED)
    for name in ANSWERED:
        if name in measured.names():
            return measured.table(name, JUDGED)
    given = given_answers(measured)
    if given is None:
        return pd.DataFrame(columns=JUDGED)
    gold = measured.table("prompts", ["prompt_id", "gold"]).set_index("prompt_id")["gold"]
    known = given["answer"].notna() & (given["error"].fillna("") == "")
    correct = (given["answer"] == given["prompt_id"].map(gold)).astype("boolean").where(known)
    return given.assign(correct=correct)[JUDGED].reset_index(drop=True)


def given_answers(measured: ResultTables) -> pd.DataFrame | None:
    """Each model's answers: model, prompt_id, answer, error and predicted_token or completion.

    Generated texts without an answer count as replies outside the options. Of a thinking model,
    the answer after its first thought counts; of pairs, the option that the model prefers of the
    two that are compared. Answers that are such choices have a column `FORCED`. None if the
    measurement has no answers.
    """
    names = measured.names()
    for name, text in ANSWERED.items():
        if name in names:
            more = [text, "finished"] if text == "completion" else [text]
            return measured.table(name, [*_KEYS, "answer", "error", *more])
    if "thought_answers" in names:
        rows = measured.table("thought_answers", [*_KEYS, "draw", "reading", "answer", "error"])
        rows = rows[rows["reading"] == "whole"].sort_values("draw").drop_duplicates(_KEYS)
        return rows.assign(**{FORCED: True})
    if "segment_effects" in names:
        rows = measured.table("segment_effects", [*_KEYS, "answer", "error"])
        return rows.drop_duplicates(_KEYS).assign(**{FORCED: True})
    if "steered" in names:
        rows = measured.table("steered")
        other = rows["other_option"].where(rows["metric"].notna())
        return rows[[*_KEYS, "error"]].assign(
            answer=rows["gold_option"].where(rows["metric"] > 0, other), **{FORCED: True}
        )
    return _preferred(measured.table("pairs")) if "pairs" in names else None


def _preferred(pairs: pd.DataFrame) -> pd.DataFrame:
    """The option that a model prefers on each prompt of its pairs."""
    denoising = pairs["direction"] == "denoising"  # the corrupt prompt is then the base prompt
    options = pairs["positive_option"], pairs["negative_option"]
    parts = []
    for place, metric in (("clean", "source"), ("corrupt", "base")):
        other = {"source": "base", "base": "source"}[metric]
        value = pairs[f"{metric}_metric"].where(denoising, pairs[f"{other}_metric"])
        answer = pd.Series(np.where(value > 0, *options), pairs.index).where(value.notna())
        ids = {"prompt_id": pairs[f"{place}_prompt_id"], "answer": answer}
        parts.append(pairs[["model", "error"]].assign(**ids, **{FORCED: True}))
    return pd.concat(parts, ignore_index=True).drop_duplicates(_KEYS)
