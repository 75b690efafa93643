"""The comparisons of accuracy that were named before any model was measured, over golden rules.

Each model answers the same questions under all settings, and all models answer the same questions.
So two settings, or two models, are compared question by question; questions about one golden rule
are one cluster.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations

import pandas as pd

from interp.console import counted
from interp.statistics.contrasts import Difference, difference
from interp.statistics.decisions import UNTESTED
from interp.statistics.summaries import grouped
from interp_experiments.findings import family_table
from interp_experiments.rulebench.results import RULE, Results

_PLAIN = {"form": "natural", "shots": "no", "thought": "no", "version": "factual"}
_SHOWN = {"form": "natural", "shots": "yes", "rules": "few"}


@dataclass(frozen=True)
class Named:
    """Two settings that differ in one factor."""

    subject: str
    """The comparison in words, for a sentence."""
    factor: str
    levels: tuple[str, str]
    """a and b of the difference a - b."""
    within: Mapping[str, str]
    """The other factors of both."""


SETTINGS = (
    Named("Golden rule against none", "rules", ("golden", "no"), _PLAIN),
    Named("Few rules against the golden one", "rules", ("few", "golden"), _PLAIN),
    Named("All rules against few", "rules", ("all", "few"), _PLAIN),
    Named(
        "Logic against natural language",
        "form",
        ("logic", "natural"),
        {"rules": "few", **{name: _PLAIN[name] for name in ("shots", "thought", "version")}},
    ),
    Named(
        "Chain of thought against none", "thought", ("yes", "no"), {**_SHOWN, "version": "factual"}
    ),
    Named(
        "Changed conclusions against factual ones",
        "version",
        ("counterfactual", "factual"),
        {**_SHOWN, "thought": "yes"},
    ),
)
"""What the paper's Sections 4.2 to 4.5 compare."""

MODELS = "Between models"
"""Every pair of models, with the golden rule and with few rules; answers are given at once."""


_ORDER = (SETTINGS[0].subject, SETTINGS[1].subject, MODELS, *(one.subject for one in SETTINGS[2:]))
"""Subjects of sentences, most important first."""


def comparisons(results: Results) -> pd.DataFrame:
    """One row per comparison, model and set: columns as in `findings.family_table`.

    The first are subject, model (empty between models), set, contrast ("a - b"), name (all of it in
    words) and n (questions and golden rules, in words).
    """
    keys = ["subject", "model", "set", "contrast", "name", "n"]
    found = [*_of_settings(results.texts), *_of_models(results.texts)]
    return family_table(found, keys)


def kinds(table: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Subjects of sentences, most important first, and their rows of `comparisons`."""
    found = {subject: table[table["subject"] == subject] for subject in _ORDER}
    return {subject: rows for subject, rows in found.items() if len(rows)}


def kinds_tested(table: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The kinds with at least one tested comparison."""
    return {
        subject: rows
        for subject, rows in kinds(table).items()
        if (rows["verdict"] != UNTESTED).any()
    }


def _of_settings(texts: pd.DataFrame) -> Iterator[tuple[dict[str, object], Difference]]:
    for named in SETTINGS:
        asked = texts[(texts[list(named.within)] == pd.Series(named.within)).all(axis=1)]
        for cell, rows in grouped(asked, ["model", "set"]):
            a, b = (rows[rows[named.factor] == level] for level in named.levels)
            if len(a) and len(b):
                where = {"subject": named.subject, **cell, "contrast": " - ".join(named.levels)}
                yield _compared({**where, "name": f"{cell['model']}, {cell['set']}"}, a, b)


def _of_models(texts: pd.DataFrame) -> Iterator[tuple[dict[str, object], Difference]]:
    plain = texts[(texts[list(_PLAIN)] == pd.Series(_PLAIN)).all(axis=1)]
    plain = plain[plain["rules"].isin(["golden", "few"])]
    for cell, rows in grouped(plain, ["set", "rules"]):
        by_model = {str(name): own for name, own in rows.groupby("model", sort=False)}
        for a, b in combinations(by_model, 2):
            where = {"subject": MODELS, "model": "", "set": cell["set"], "contrast": f"{a} - {b}"}
            name = f"{a} − {b}, {cell['set']}, {cell['rules']}"
            yield _compared({**where, "name": name}, by_model[a], by_model[b])


def _compared(
    where: dict[str, object], a: pd.DataFrame, b: pd.DataFrame
) -> tuple[dict[str, object], Difference]:
    """Compares the questions asked both times; all questions if there are none."""
    both = set(a["pair_id"]) & set(b["pair_id"])
    if both:
        a, b = (rows[rows["pair_id"].isin(both)] for rows in (a, b))
    rules = pd.concat([a[RULE], b[RULE]]).nunique()
    questions = pd.concat([a["pair_id"], b["pair_id"]]).nunique()
    n = f"{counted(questions, 'question')}, {counted(rules, 'rule')}"
    return {**where, "n": n}, difference(*map(_sums, (a, b)))


def _sums(rows: pd.DataFrame) -> pd.DataFrame:
    """Right answers and questions by golden rule."""
    answers = rows.groupby(RULE, sort=False)["correct"]
    return pd.DataFrame({"hits": answers.sum(), "trials": answers.size()}).astype(float)
