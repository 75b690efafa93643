"""The answers behind any result, for cautions and for the browser of pairs."""

from collections.abc import Iterable, Mapping, Sequence

import pandas as pd

from interp.analysis.cautions.answers import read_whole
from interp.analysis.cautions.caution import Caution, ordered
from interp.analysis.cautions.collected import cautions_on
from interp.errors import UserError
from interp.measuring.spec import spec_named
from interp.plugins import named
from interp.results.measured import ResultTables

KEYS = ["model", "prompt_id"]

JUDGED = [*KEYS, "answer", "correct", "error"]
"""Columns of `judged_answers`."""


class Given:
    """What the tables of a measurement tell of its models' answers.

    These are the tables that `interp.scoring.answers` makes; a spec whose tables are others names a
    subclass as `given`.
    """

    read_in, unit = "option_probabilities", "prompt_id"
    """The table that says whether options were read as whole texts, and what its rows are about."""

    own = True
    """Whether the answers are the model's own rather than those of random weights."""

    def __init__(self, measured: ResultTables) -> None:
        self.measured = measured

    def answers(self) -> pd.DataFrame | None:
        """Each model's answers, or None: model, prompt_id, answer, error; correct, if judged.

        predicted_token or completion is what the model wrote; a column `FORCED` says that answers
        are preferred options.
        """
        return self.measured.table("answers") if "answers" in self.measured.names() else None

    def options(self) -> pd.DataFrame | None:
        """The probabilities of the options of each prompt; None if they were not read."""
        name, columns = "option_probabilities", ["option", "probability", "relative_probability"]
        were_read = name in self.measured.names()
        return self.measured.table(name, [*KEYS, *columns]) if were_read else None

    def differences(self) -> Mapping[str, float] | None:
        """How much the sides of each model's pairs differ; None if the options tell."""
        return None

    def methods(self) -> Sequence[str]:
        """The methods of attribution."""
        return ()

    def gaps(self) -> pd.DataFrame | None:
        """How far scores are from adding up; None if no method promises that."""
        return None

    def others(self) -> Iterable[Caution]:
        """Further cautions."""
        return ()

    def whole(self) -> pd.DataFrame:
        """Whether options were read as whole texts although first tokens were asked for."""
        columns = ["model", self.unit, "whole"]
        asked = self.measured.about.parameters.get("answers") == "whole"
        if not asked and self.read_in in self.measured.names():
            try:
                return self.measured.table(self.read_in, columns).drop_duplicates(columns[:2])
            except (UserError, KeyError):  # measured before options could be read whole
                pass
        return pd.DataFrame(columns=columns)


def given_by(measured: ResultTables) -> Given:
    """What the tables of a measurement tell."""
    try:
        spec = spec_named(measured.about.measurement)
    except UserError:  # a measurement that is no longer installed
        return Given(measured)
    given: Given = named(spec.given)(measured)
    given.own = spec.own_answers
    return given


def cautions_about(measured: ResultTables) -> tuple[Caution, ...]:
    """Everything that a careful reader would object to in a measurement, by severity."""
    given = given_by(measured)
    cautions = cautions_on(
        measured.table("prompts"),
        answers=given.answers() if given.own else None,
        options=given.options() if given.own else None,
        facts=measured.facts(),
        methods=given.methods(),
        gaps=given.gaps(),
        differences=given.differences() if given.own else {},
        cluster=measured.about.cluster,
    )
    return ordered((*cautions, *read_whole(given.whole()), *given.others()))


def judged_answers(measured: ResultTables) -> pd.DataFrame:
    """Each model's answer to each prompt and whether it is correct, with `JUDGED` as columns.

    `correct` is missing if an answer was not judged, or if a prompt has an error. A measurement
    without answers has no rows.
    """
    given = given_by(measured)
    answers = given.answers() if given.own else None
    if answers is None:
        return pd.DataFrame(columns=JUDGED)
    if "correct" not in answers:
        gold = measured.table("prompts", ["prompt_id", "gold"]).set_index("prompt_id")["gold"]
        answered = answers["answer"].notna() & (answers["error"].fillna("") == "")
        correct = (answers["answer"] == answers["prompt_id"].map(gold)).astype("boolean")
        answers = answers.assign(correct=correct.where(answered))
    return answers[JUDGED].reset_index(drop=True)
