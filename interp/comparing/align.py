"""Which items of several logs are the same, and which depend on each other.

1. Items with the same id in two logs are the same only if their texts are: equal, one within the
   other (such as a question in its prompt), or from the same document.
2. If ids have nothing in common, or on request, items are paired by texts that occur once.
3. Ids that agree while most texts do not look like chance, and are refused.
4. Items depend on each other if they have equal texts, or share a long beginning or a long field.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from os.path import commonprefix  # of letters

import pandas as pd

from interp.comparing.items import Side
from interp.errors import UserError, one_line
from interp.statistics.clusters import FEWEST
from interp.stored.scores import Scored

LEAST_WITHIN, LEAST_STEM = 8, 50
"""Numbers of characters from which a text may be looked for within another, and from which a
shared beginning, or field, makes items dependent."""

ALONE = "item"
"""The name of a cluster for `--cluster` with which no items depend on each other."""

Items = Mapping[str, Scored]

_NOTES = {
    "differing": "ids have other texts than in {} and are left out",
    "bare": "items are paired by id alone, since a log has no texts",
    "reworded": "items are asked in another form than in {}, such as with other shots",
    "aimed": "items have another target than in {}",
}
"""Kinds of items with one id in two logs, and what is said of them."""


def every(sides: Sequence[Side]) -> dict[str, Scored]:
    """Each item, from the first log that has it."""
    return {name: item for side in reversed(sides) for name, item in side.items.items()}


def aligned(sides: Sequence[Side], said: list[str], *, by_text: bool = False) -> list[Side]:
    """The logs with common names of items: those of the first log, or of the first that has one.

    Notes on the pairing are added to `said`. A UserError says that a log has no items in common
    with those before it, or only by chance.
    """
    paired = [*sides[:1]]
    for side in sides[1:]:
        before = paired[0].name if len(paired) == 1 else "a log before it"
        names = _names(every(paired), before, side, said, by_text)
        items = {common: side.items[name] for name, common in names.items()}
        scores = side.scores.loc[[*names]].set_axis([*items])
        paired.append(side._replace(items=items, scores=scores))
    return paired


def _names(
    known: Items, before: str, side: Side, said: list[str], by_text: bool
) -> Mapping[str, str]:
    """The common name of each item of a log; others are not to be paired."""
    new = side.items
    ids = [name for name in new if name in known]
    if by_text or not ids:
        pairs = _pairs_by_text(known, new)
        if not pairs:
            raise UserError(
                f"{side.name} has no item of {before}: no id and no text is in both; compare logs "
                "of the same task, with texts or the tool's ids"
            )
        said.append(f"{side.name}: items are paired by texts that occur once in both logs, not ids")
        return {name: pairs.get(name, f"{name} ({side.name})") for name in new}
    kinds = {name: {*_kinds(known[name], new[name])} for name in ids}
    noted = {kind: [name for name in ids if kind in kinds[name]] for kind in _NOTES}
    differing = noted["differing"]
    if 2 * len(differing) > len(ids) - len(noted["bare"]):
        raise UserError(
            f"{len(ids):,} ids of {side.name} are also those of {before}, but {len(differing):,} "
            f"of their texts differ, such as {_both(known, new, differing[0])}, so pairing them "
            f"would be chance. {len(_pairs_by_text(known, new)):,} texts occur once in both: pair "
            "them with --pair text, or compare logs of the same version, order and seed of the data"
        )
    said += [
        f"{side.name}: {len(names):,} {_NOTES[kind].format(before)}, such as "
        + _both(known, new, names[0])
        for kind, names in noted.items()
        if names
    ]
    return {name: name for name in new if name not in {*differing}}


def _kinds(one: Scored, other: Scored) -> Iterator[str]:
    """The kinds (`_NOTES`) of two items with one id."""
    texts, fields = (_plain(one), _plain(other)), (_fields(other), _fields(one))
    short, long = sorted(texts, key=len)
    same = one.document and one.document == other.document
    same = same or short == long or (len(short) >= LEAST_WITHIN and short in long)
    if not short:
        yield "bare"
    elif not same and texts[0] not in fields[0] and texts[1] not in fields[1]:
        yield "differing"
        return
    elif short != long:
        yield "reworded"
    # Kinds of logs write the same target in different ways.
    kinds = [(bool(item.document), bool(item.epoch)) for item in (one, other)]
    if kinds[0] == kinds[1] and one.target and other.target and one.target != other.target:
        yield "aimed"


def _both(known: Items, new: Items, name: str) -> str:
    """The id of an item, and its texts in two logs, from where they differ."""
    texts = (_plain(known[name]), _plain(new[name]))
    if texts[0] == texts[1] or not all(texts):
        return one_line(name, 40)
    start = max(0, len(commonprefix(texts)) - 20)  # noqa: RUF071
    shown = " and ".join(repr(one_line(text[start:], 60)) for text in texts)
    return f"{one_line(name, 40)} ({shown})"


def _plain(item: Scored) -> str:
    return " ".join(item.text.split())


def _fields(item: Scored) -> set[str]:
    """The texts in an item's document or metadata, one of which may be its question."""
    return {" ".join(field.split()) for field in item.fields.values() if isinstance(field, str)}


def _pairs_by_text(known: Items, new: Items) -> dict[str, str]:
    """The names of items, each with that of the only known one that is asked the same.

    Texts are compared with texts, documents with documents, and a field of either, which may be
    the question, with the other's text: two equal fields could be of different questions.
    """
    pairs = _once(new).merge(_once(known), on="text", suffixes=("", "_known"))
    kinds = pairs["kind"] + " " + pairs["kind_known"]
    asked = kinds.isin(["asked asked", "asked field", "field asked", "document document"])
    pairs = pairs.loc[asked, ["name", "name_known"]].drop_duplicates()
    several = pairs["name"].duplicated(keep=False) | pairs["name_known"].duplicated(keep=False)
    return dict(pairs[~several].itertuples(index=False, name=None))


def _once(items: Items) -> pd.DataFrame:
    """The texts that only one item has, with its name, by kind."""
    rows: list[tuple[str, str, str]] = []
    for name, item in items.items():
        rows += [("asked", _plain(item), name), ("document", item.document, name)]
        rows += [("field", text, name) for text in _fields(item)]
    texts = pd.DataFrame(rows, columns=["kind", "text", "name"], dtype=object)
    texts = texts[texts["text"].str.len() >= LEAST_WITHIN]
    return texts.drop_duplicates(["kind", "text"], keep=False)


def clusters_of(sides: Sequence[Side], column: str | None, said: list[str]) -> dict[str, str]:
    """The cluster of each item: the value of a field or, without one, what items share."""
    items = every(sides)
    column = column or next((side.log.cluster for side in sides if side.log.cluster), None)
    alone = {name: name for name in items}
    if column == ALONE:
        return alone
    if column:
        values = values_of(sides, column, "each counts as its own cluster", said)
        named = {name: values.get(name, f"item {name}") for name in items}
        unit = f"{one_line(column)} ({len({*named.values()}):,} clusters)"
        said.append(f"the unit of intervals and p is {unit}, and that of p_mcnemar the item")
        return named
    shared = _shared(items)
    sizes = Counter(shared.values())
    dependent = len(items) - [*sizes.values()].count(1)
    if not dependent:
        return alone
    note = f"these are the unit; --cluster names another one (--cluster {ALONE}: none)"
    if few := len(sizes) < FEWEST:
        note = (
            "too few to be the unit, so the unit is the item; if they depend on each other, "
            "intervals are too narrow"
        )
    said.append(
        f"{dependent:,} of {len(items):,} items have equal texts, or share a long beginning or "
        f"field, in {len(sizes):,} clusters: {note}"
    )
    return alone if few else shared


def values_of(
    sides: Sequence[Side], column: str, otherwise: str, said: list[str]
) -> dict[str, str]:
    """The value of a field in each item that has one, from the first log that does.

    Raises:
        UserError: no item has it.
    """
    items = every(sides)
    values: dict[str, str] = {}
    for side in reversed(sides):
        of_side = {name: item.fields.get(column) for name, item in side.items.items()}
        values |= {
            name: str(value)
            for name, value in of_side.items()
            if isinstance(value, str | int | float) and str(value) not in ("", "nan")
        }
    if not values:
        fields = sorted({key for item in items.values() for key in item.fields})
        listed = one_line(", ".join(fields), 200) or "none"
        raise UserError(f"no item has a field {one_line(column)!r}; expected one of {listed}")
    if missing := len(items) - len(values):
        said.append(f"{missing:,} items have no {one_line(column)}; {otherwise}")
    return values


def _shared(items: Items) -> dict[str, str]:
    """The number of each item's cluster: items that share something, whatever connects them."""
    from scipy.cluster.hierarchy import DisjointSet

    sets = DisjointSet(items)
    for one, other in _links(items):
        sets.merge(one, other)
    numbers = pd.factorize(pd.Series([sets[name] for name in items]))[0]
    return dict(zip(items, map(str, numbers), strict=True))


def _links(items: Items) -> Iterator[tuple[str, str]]:
    """Items of which one shares a text, a long field or a long beginning with the other."""
    asked: dict[str, str] = {}
    places: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for name, item in items.items():
        texts = {key: text for key, text in item.fields.items() if isinstance(text, str)}
        longest = max(texts.values(), key=len, default="") if item.document else ""
        asked[name] = " ".join((longest or item.text).split())
        places["", asked[name]].append(name)
        for key, text in texts.items():
            if len(text) >= LEAST_STEM and text != longest:
                places[key, text].append(name)
    for (_, text), names in places.items():
        if text and len(names) < len(items):  # what all have distinguishes none
            yield from ((names[0], other) for other in names[1:])
    start = len(commonprefix(list(asked.values())))  # noqa: RUF071
    for one, other in pairwise(sorted(asked, key=lambda name: asked[name])):
        rests = [asked[name][start:] for name in (one, other)]
        shared_start = len(commonprefix(rests))  # noqa: RUF071
        if shared_start >= LEAST_STEM and 2 * shared_start >= min(map(len, rests)):
            yield one, other
