"""Instances read from data in the published columns: a file, a folder, or a hub data set."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from interp import UserError
from interp.extend import shortened
from interp.extend.data import Cells, LackingColumnsError, parse_each, read_rows
from interp_experiments.rulebreakers.instances import COLUMNS, EntityPair, Instance
from interp_experiments.rulebreakers.templates import PRONOUNS, VERBS, without_article

T = TypeVar("T")

Located = Sequence[tuple[str, Instance]]
"""Instances, each with the name of its row for use in messages."""

_RULE_NAMES = {"mt": "mt", "modus tollens": "mt", "ds": "ds", "disjunctive syllogism": "ds"}

_TRUTH = {"true": True, "1": True, "1.0": True, "false": False, "0": False, "0.0": False}

_LABEL_OF_SUFFIX = {"rb": False, "nonrb": True}


def load_published(source: str | Path) -> Located:
    """Instances from a file, a folder of files, or a hub data set such as jason-c/rulebreakers.

    Raises:
        UserError: the data cannot be read, columns are missing, fields are empty or contradictory,
            a sentence differs from the one that the other columns imply, an id occurs twice, or an
            instance lacks its counterpart or differs from it in more than entity A.
    """
    try:
        rows = read_rows(source, tuple(COLUMNS))
    except UserError as error:
        if not isinstance(error.__cause__, LackingColumnsError):
            raise
        raise UserError(
            f"{error}. These are the columns of the published RULEBREAKERS; a table of your own "
            "pairs has the columns pair, side and gold"
        ) from error
    instances = parse_each(((row.where, row.cells) for row in rows), _instance)
    located = list(zip((row.where for row in rows), instances, strict=True))
    pairs: defaultdict[str, list[tuple[str, Instance]]] = defaultdict(list)
    for where, instance in located:
        pairs[instance.pair_id].append((where, instance))
    parse_each(((sides[-1][0], sides) for sides in pairs.values()), _check_pair)
    _check_categories(located)
    return located


def _instance(cells: Cells) -> Instance:
    texts = {field: _text(column, cells[column]) for column, field in COLUMNS.items()}
    suffix = texts["id"].rpartition("_")[2]
    label = _chosen("label", texts.pop("label").lower(), _TRUTH)
    expected = _chosen("id (its ending)", suffix, _LABEL_OF_SUFFIX)
    if label != expected:
        raise UserError(
            f"the id ends in {suffix}, which means the label {expected}, but the label is {label}"
        )
    verbs = _chosen("category", texts["category"], VERBS)
    _chosen("verb", texts["verb"], dict.fromkeys(verbs))
    _chosen("pronoun", texts["pronoun"], dict.fromkeys(PRONOUNS))
    texts["rule"] = _rule(texts["rule"], texts["premise1"])
    texts["entity_b"] = without_article(texts["entity_b"], group=texts["category"])
    instance = Instance(**texts, label=label)
    made = instance.about(instance.pair)
    for sentence, text, right in zip(made._fields, instance.reasoning, made, strict=True):
        if text != right:
            raise UserError(
                f"{sentence} is {shortened(text)!r}; expected {shortened(right)!r}, which "
                f"follows from the columns {', '.join([*COLUMNS][1:8])}"
            )
    return instance


def _text(column: str, value: object) -> str:
    text = "" if value is None or (isinstance(value, float) and math.isnan(value)) else str(value)
    if not text.strip():
        raise UserError(f"the column {column} is empty; every field must be filled")
    text = text.strip()
    if hidden := [letter for letter in text if not letter.isprintable()]:
        raise UserError(f"{column} holds {hidden[0]!r}; expected plain text on one line")
    return text


def _chosen(column: str, got: str, known: Mapping[str, T]) -> T:
    if got not in known:
        raise UserError(f"{column} is {shortened(got, 60)!r}; expected one of {', '.join(known)}")
    return known[got]


def _rule(named: str, premise1: str) -> str:
    form = "mt" if premise1.startswith("If ") else "ds" if " either " in premise1 else None
    rule = _RULE_NAMES.get(named.lower().replace("_", " "), form)
    if rule is None:
        raise UserError(
            f"rulebreaker_type is {shortened(named, 60)!r} and premise1 neither begins with 'If' "
            f"nor contains 'either'; expected one of {', '.join(_RULE_NAMES)}"
        )
    return rule


def _check_pair(sides: Located) -> None:
    (where, one), *others = sides
    if [other.label for _, other in others] != [not one.label]:
        raise UserError(
            f"{shortened(one.id, 60)!r} ({where}) has {len(others)} other rows with its number; "
            "every rulebreaker ID_rb needs exactly one counterpart ID_nonrb"
        )
    ((_, other),) = others
    same = ("rule", "category", "name", "pronoun", "verb", "entity_b")
    for column, field in COLUMNS.items():
        got, expected = getattr(other, field), getattr(one, field)
        if field in same and got != expected:
            raise UserError(
                f"{column} is {shortened(got, 60)!r}, but {shortened(expected, 60)!r} "
                f"in its counterpart ({where}); the sides of a pair differ only in entityA"
            )
    if one.entity_a == other.entity_a:
        raise UserError(
            f"entityA is {shortened(one.entity_a, 60)!r}, as in its counterpart ({where}); the "
            "sides of a pair must differ in entityA"
        )


def _check_categories(located: Located) -> None:
    categories: dict[tuple[str, str], str] = {}

    def check(instance: Instance) -> None:
        first = categories.setdefault((instance.entity_a, instance.entity_b), instance.category)
        if first != instance.category:
            raise UserError(
                f"category is {instance.category!r}, but {first!r} in an earlier row about "
                f"{shortened(instance.entity_b, 60)!r} and {shortened(instance.entity_a, 60)!r}"
            )

    parse_each(((where, item) for where, item in located if not item.label), check)


def published_pairs(located: Located) -> list[EntityPair]:
    """The distinct entity pairs of the published rulebreakers; other rows pair B with a wrong A.

    Raises:
        UserError: the rows give an entity B two answers.
    """
    first: dict[str, tuple[str, EntityPair]] = {}

    def add(row: tuple[str, Instance]) -> None:
        where, instance = row
        pair = instance.pair
        place, known = first.setdefault(pair.fact_id, (where, pair))
        if known != pair:
            raise UserError(
                f"the fact about {shortened(pair.entity_b, 60)!r} has the answer "
                f"{shortened(pair.entity_a, 60)!r}, but {shortened(known.entity_a, 60)!r} in "
                f"{place}; expected one answer for each entity B"
            )

    parse_each(((row[0], row) for row in located if not row[1].label), add)
    return [pair for _, pair in first.values()]
