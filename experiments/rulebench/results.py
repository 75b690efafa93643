"""The measurements of a study of RuleBench, and the comparisons that were named in advance.

Direct answers name no rule, but in kinship, CLUTRR and StringGame each rule determines an answer. A
wrong answer that a noise rule determines is a triggering error; any other wrong answer is an
execution error. Rules of the other sets do not give their answers in a form that can be compared.

Each model answers the same questions under all settings, and all models answer the same questions.
Two settings or two models are therefore compared question by question, with golden rules as
clusters.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import combinations
from typing import NamedTuple

import pandas as pd

from interp import Attributions, StudyFolder, UserError
from interp.extend import InFolder, RunFolder, counted
from interp.extend.cautions import Caution, cautions_on
from interp.extend.statistics import UNTESTED, Difference, difference, grouped
from interp_experiments.findings import family_table
from interp_experiments.rulebench.items import CLUTRR, KINSHIP, STRING_GAME
from interp_experiments.rulebench.string_game import string_rules

STAGES = {"direct": (False, False), "demonstrated": (True, False), "thought": (True, True)}
"""Stages of generated texts: whether prompts have demonstrations and ask for reasoning."""

ATTRIBUTION = "attribution"

SETTING = {
    "set": "the set of questions",
    "rules": "the rules shown: none, the golden rule, few or all",
    "form": "natural language or first-order logic",
    "shots": "whether demonstrations precede the question",
    "thought": "whether the prompt asks for a thought before the answer",
    "version": "counterfactual, with changed conclusions and answers, or factual",
}
"""Factors of a setting, in words."""

RULE = "rule"
"""The golden rule; questions with the same one are a cluster."""

_PROMPTS = ["prompt_id", "pair_id", RULE, "gold", "golden_place", *SETTING]
_ANSWERS = ["model", "prompt_id", "answer", "correct", "error"]

RIGHT, TRIGGERING, EXECUTION = "right", "triggering error", "execution error"

OUTCOMES = (RIGHT, TRIGGERING, EXECUTION, "wrong", "no answer")
"""A wrong answer is just "wrong" if the set's rules do not state answers."""

_CONCLUSION = re.compile(r"\bis the ([\w-]+) of \w+\W*$")


@dataclass(frozen=True)
class Results:
    """The generated texts of a study, and the answers read from them."""

    texts: pd.DataFrame
    """One row per model and measured prompt: pair_id (the question), rule (its golden rule), the
    factors of `SETTING`, gold, golden_place, completion, outcome, correct (bool)."""
    failed: pd.DataFrame
    """With the same columns, plus error."""
    found: pd.DataFrame = field(default_factory=pd.DataFrame)
    """For each attributed prompt, the columns of `interp.measurements.attribution.segments.finds`,
    set, rule, and outcome (one of `OUTCOMES`)."""
    prompts: pd.DataFrame = field(default_factory=pd.DataFrame)
    answers: pd.DataFrame = field(default_factory=pd.DataFrame)
    places: Mapping[str, str] = field(default_factory=dict)
    cautions: tuple[Caution, ...] = ()

    @property
    def models(self) -> list[str]:
        """The models that were measured."""
        return list(pd.concat([self.texts, self.failed])["model"].unique())


def read_results(study: StudyFolder) -> Results:
    """The results of a study, finished or not.

    Raises:
        UserError: it has none yet, or an earlier version of interp made its prompts.
    """
    runs = [run for stage in STAGES if (run := study.runs.get(stage)) and run.tables()]
    if not runs:
        raise UserError(f"{study.folder} has no texts yet; run the study's command again to resume")
    rows = pd.concat([_texts(run) for run in runs], ignore_index=True)
    failed = rows["error"] != ""
    texts = rows[~failed].drop(columns="error").astype({"correct": bool})
    prompts = pd.concat([run.table("prompts") for run in runs], ignore_index=True)
    answers = pd.concat([run.table("completions", _ANSWERS) for run in runs], ignore_index=True)
    facts = {name: traits for run in runs for name, traits in InFolder(run).facts().items()}
    return Results(
        texts.reset_index(drop=True),
        rows[failed].reset_index(drop=True),
        _found(study),
        prompts=prompts,
        answers=answers,
        places=study.places(),
        cautions=cautions_on(prompts, answers=answers, facts=facts, cluster=RULE),
    )


def _texts(run: RunFolder) -> pd.DataFrame:
    prompts = run.table("prompts")
    if missing := [name for name in _PROMPTS if name not in prompts]:
        raise UserError(
            f"the prompts in {run.folder} lack {', '.join(missing)}: they were made by an earlier "
            "version of interp; run the study again with a different --out"
        )
    columns = ["model", "prompt_id", "completion", "outcome", "correct", "error"]
    return run.table("completions", columns).merge(prompts[_PROMPTS], on="prompt_id")


def _found(study: StudyFolder) -> pd.DataFrame:
    attributed, answered = (study.runs.get(name) for name in (ATTRIBUTION, "direct"))
    if attributed is None or answered is None or not answered.tables():
        return pd.DataFrame()
    rules = Attributions.of(attributed).finds()
    if rules.empty:
        return rules
    prompts = attributed.table("prompts").set_index("prompt_id")
    texts = answered.table("completions", _ANSWERS)
    texts = texts[(texts["error"] == "") & texts["prompt_id"].isin(prompts.index)]
    outcomes = [
        followed(prompts.loc[row["prompt_id"]], str(row["answer"]), correct=bool(row["correct"]))
        for row in texts.to_dict("records")
    ]
    judged = texts[["model", "prompt_id"]].assign(outcome=outcomes)
    return rules.merge(judged, on=["model", "prompt_id"]).merge(
        prompts[["set", RULE]], left_on="prompt_id", right_index=True
    )


def followed(prompt: pd.Series, answer: str, *, correct: bool) -> str:
    """One of `OUTCOMES`, for what the parser found in a text (empty: nothing)."""
    if correct:
        return RIGHT
    if not answer:
        return "no answer"
    answers: list[str | None] = []
    text = prompt["text"]
    while pd.notna(start := prompt.get(f"noise{len(answers) + 1}_start")):
        end = prompt[f"noise{len(answers) + 1}_end"]
        answers.append(_answer(prompt, text[int(start) : int(end)]))
    if None in answers:
        return "wrong"
    return TRIGGERING if answer in answers else EXECUTION


def _answer(prompt: pd.Series, rule: str) -> str | None:
    """What a rule leads to, even if it does not fit ("None": no number); None if unknown."""
    if prompt["set"] in (KINSHIP.name, CLUTRR.name):
        conclusion = _CONCLUSION.search(rule)
        return conclusion[1] if conclusion else None
    if prompt["set"] == STRING_GAME.name and rule in _actions():
        return str(_actions()[rule](prompt["string"]))
    return None


@cache
def _actions() -> Mapping[str, Callable[[str], int | None]]:
    return {one.rule.natural: one.action.of for one in string_rules().values()}


_PLAIN = {"form": "natural", "shots": "no", "thought": "no", "version": "factual"}
_DIRECT = {"rules": "few", "shots": "no", "thought": "no", "version": "factual"}
_FACTUAL = {"rules": "few", "shots": "yes", "form": "natural", "version": "factual"}
_THOUGHT = {"rules": "few", "shots": "yes", "form": "natural", "thought": "yes"}


class Named(NamedTuple):
    """Two settings that differ in one factor, by the levels a and b of the difference a - b."""

    subject: str
    factor: str
    levels: tuple[str, str]
    within: Mapping[str, str]


SETTINGS = (
    Named("Golden rule against none", "rules", ("golden", "no"), _PLAIN),
    Named("Few rules against the golden one", "rules", ("few", "golden"), _PLAIN),
    Named("All rules against few", "rules", ("all", "few"), _PLAIN),
    Named("Logic against natural language", "form", ("logic", "natural"), _DIRECT),
    Named("Chain of thought against none", "thought", ("yes", "no"), _FACTUAL),
    Named(
        "Changed conclusions against factual ones",
        "version",
        ("counterfactual", "factual"),
        _THOUGHT,
    ),
)
"""The comparisons of the paper's Sections 4.2 to 4.5."""

MODELS = "Between models"

_ORDER = (SETTINGS[0].subject, SETTINGS[1].subject, MODELS, *(one.subject for one in SETTINGS[2:]))
"""In the order of the first screen."""

Compared = tuple[dict[str, object], Difference]


def comparisons(results: Results) -> pd.DataFrame:
    """One row per comparison, model and set, with the columns of `findings.family_table`.

    model is empty in comparisons between models; contrast is "a - b", name the comparison in words,
    and n the numbers of questions and golden rules in words.
    """
    keys = ["subject", "model", "set", "contrast", "name", "n"]
    return family_table([*_of_settings(results.texts), *_of_models(results.texts)], keys)


def kinds_tested(table: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The comparisons by subject, in the order of the first screen, of subjects with a test."""
    by_subject = {subject: table[table["subject"] == subject] for subject in _ORDER}
    return {name: rows for name, rows in by_subject.items() if (rows["verdict"] != UNTESTED).any()}


def under(rows: pd.DataFrame, **setting: str) -> pd.DataFrame:
    """The rows with these values of factors."""
    return rows[(rows[list(setting)] == pd.Series(setting)).all(axis=1)]


def _of_settings(texts: pd.DataFrame) -> Iterator[Compared]:
    for named in SETTINGS:
        for cell, rows in grouped(under(texts, **named.within), ["model", "set"]):
            a, b = (rows[rows[named.factor] == level] for level in named.levels)
            if len(a) and len(b):
                where = {"subject": named.subject, **cell, "contrast": " - ".join(named.levels)}
                yield _compared({**where, "name": f"{cell['model']}, {cell['set']}"}, a, b)


def _of_models(texts: pd.DataFrame) -> Iterator[Compared]:
    plain = under(texts, **_PLAIN)
    plain = plain[plain["rules"].isin(["golden", "few"])]
    for cell, rows in grouped(plain, ["set", "rules"]):
        by_model = {str(name): answers for name, answers in rows.groupby("model", sort=False)}
        for a, b in combinations(by_model, 2):
            where = {"subject": MODELS, "model": "", "set": cell["set"], "contrast": f"{a} - {b}"}
            name = f"{a} − {b}, {cell['set']}, {cell['rules']}"
            yield _compared({**where, "name": name}, by_model[a], by_model[b])


def _compared(where: dict[str, object], a: pd.DataFrame, b: pd.DataFrame) -> Compared:
    """The comparison over the questions asked in both conditions; over all if they share none."""
    both = set(a["pair_id"]) & set(b["pair_id"])
    if both:
        a, b = (rows[rows["pair_id"].isin(both)] for rows in (a, b))
    rules, questions = (pd.concat([a[name], b[name]]).nunique() for name in (RULE, "pair_id"))
    n = f"{counted(questions, 'question')}, {counted(rules, 'rule')}"
    return {**where, "n": n}, difference(_sums(a), _sums(b))


def _sums(rows: pd.DataFrame) -> pd.DataFrame:
    answers = rows.groupby(RULE, sort=False)["correct"]
    return pd.DataFrame({"hits": answers.sum(), "trials": answers.size()}).astype(float)
