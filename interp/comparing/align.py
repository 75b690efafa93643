"""Which items of several logs are the same, and which depend on each other.

1. Items with the same id in two logs are the same only if their texts are: equal, one within the
   other (such as a question in its prompt), or from the same document.
2. If ids have nothing in common, or on request, items are paired by texts that occur once.
3. Ids that agree while most texts do not look like chance, and are refused.
4. Items depend on each other if they have equal texts, or share a long beginning or a long field.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from os.path import commonprefix  # of letters
from typing import NamedTuple

import numpy as np

from interp.comparing.items import Side
from interp.errors import UserError, one_line
from interp.statistics.clusters import FEWEST
from interp.stored.scores import Scored

LEAST_WITHIN, LEAST_STEM = 8, 50
"""Numbers of characters from which a text may be looked for within another, and from which a
shared beginning, or field, makes items dependent."""

ALONE = "item"
"""The name of a cluster for `--cluster` with which no items depend on each other."""


class Aligned(NamedTuple):
    """The items of all logs under common names, and what is said of their pairing."""

    sides: list[Side]
    said: list[str]

    @property
    def every(self) -> dict[str, Scored]:
        """Each item, from the first log that has it."""
        return {name: own for side in reversed(self.sides) for name, own in side.items.items()}


def aligned(sides: Sequence[Side], *, by_text: bool = False) -> Aligned:
    """The logs with common names of items: those of the first log, or of the first that has one.

    Raises:
        UserError: a log has no items in common with those before it, or only by chance.
    """
    found = Aligned([], [])
    for side in sides:
        names = _paired(found, side, by_text) if found.sides else {own: own for own in side.items}
        items = {name: side.items[own] for own, name in names.items()}
        scores = side.scores.loc[[*names]].set_axis([*items])
        found.sides.append(side._replace(items=items, scores=scores))
    return found


_NOTES: Sequence[tuple[Callable[[Scored, Scored, bool | None], bool], str]] = (
    (
        lambda one, other, same: same is False,
        "{count:,} ids have other texts than in {before} and are left out, such as {both}",
    ),
    (
        lambda one, other, same: same is None,
        "{count:,} items are paired by id alone, since a log has no texts",
    ),
    (
        lambda one, other, same: bool(same) and _plain(one) != _plain(other),
        "{count:,} items are asked in another form than in {before} (such as other shots, another "
        "template, or a question alone)",
    ),
    (
        lambda one, other, same: bool(same) and _targets_differ(one, other),
        "{count:,} items have another target than in {before}, such as {name}: their scores are "
        "not about the same answers",
    ),
)
"""What is said of items with the same id, by the log before, by this one, and if they are same."""


def _paired(found: Aligned, side: Side, by_text: bool) -> Mapping[str, str]:
    """The common name of each item of a log; others are not to be paired."""
    known, here = found.every, side.items
    ids = [name for name in here if name in known]
    before = found.sides[0].name if len(found.sides) == 1 else "a log before it"
    if by_text or not ids:
        pairs = _pairs_by_text(known, here)
        if not pairs:
            raise UserError(
                f"{side.name} has no item of {before}: no id and no text is in both; compare logs "
                "of the same task, with texts or the tool's ids"
            )
        found.said.append(
            f"{side.name}: items are paired by texts that occur once in both logs, not by ids"
        )
        return {own: pairs.get(own, f"{own} ({side.name})") for own in here}
    alike = {name: _same(known[name], here[name]) for name in ids}
    differing = [name for name in ids if alike[name] is False]
    if 2 * len(differing) > len(ids) - sum(same is None for same in alike.values()):
        raise UserError(
            f"{len(ids):,} ids of {side.name} are also those of {before}, but {len(differing):,} "
            f"of their texts differ, such as {_both(known, here, differing[0])}, so pairing them "
            f"would be chance. {len(_pairs_by_text(known, here)):,} texts occur once in both: pair "
            "them with --pair text, or compare logs of the same version, order and seed of the data"
        )
    for holds, note in _NOTES:
        if names := [name for name in ids if holds(known[name], here[name], alike[name])]:
            about = {"name": one_line(names[0], 40), "both": _both(known, here, names[0])}
            told = note.format(count=len(names), before=before, **about)
            found.said.append(f"{side.name}: {told}")
    return {name: name for name in here if alike.get(name) is not False}


def _both(known: Mapping[str, Scored], here: Mapping[str, Scored], name: str) -> str:
    texts = (_plain(known[name]), _plain(here[name]))
    start = max(0, len(commonprefix(texts)) - 20)  # noqa: RUF071
    shown = " and ".join(repr(one_line(text[start:], 60)) for text in texts)
    return f"{one_line(name, 40)} ({shown})"


def _plain(item: Scored) -> str:
    return " ".join(item.text.split())


def _fields(item: Scored) -> set[str]:
    """The texts in an item's document or metadata, one of which may be its question."""
    return {" ".join(own.split()) for own in item.fields.values() if isinstance(own, str)}


def _same(one: Scored, other: Scored) -> bool | None:
    """Whether two items are the same; None if nothing tells."""
    if one.document and one.document == other.document:
        return True
    if not one.text or not other.text:
        return None
    short, long = sorted((_plain(one), _plain(other)), key=len)
    within = short == long or (len(short) >= LEAST_WITHIN and short in long)
    return within or _plain(other) in _fields(one) or _plain(one) in _fields(other)


def _targets_differ(one: Scored, other: Scored) -> bool:
    """Whether targets differ in logs of one kind; kinds write the same target in different ways."""
    alike = all(
        bool(getattr(one, key)) == bool(getattr(other, key)) for key in ("document", "epoch")
    )
    return alike and bool(one.target and other.target) and one.target != other.target


def _pairs_by_text(known: Mapping[str, Scored], here: Mapping[str, Scored]) -> dict[str, str]:
    """The names of items here, each with that of the only one known that is asked the same.

    Texts are compared with texts, documents with documents, and a field of either, which may be
    the question, with the other's text: two equal fields could be of different questions.
    """
    pairs = set()
    texts, fields = (lambda item: {_plain(item)}), _fields
    for of_known, of_here in (
        (texts, texts), (fields, texts), (texts, fields), *[(lambda item: {item.document},) * 2]
    ):  # fmt: skip
        there, own = _once(known, of_known), _once(here, of_here)
        pairs |= {(own[text], there[text]) for text in own.keys() & there.keys()}
    counts = [Counter(names) for names in zip(*pairs, strict=True)]
    return {own: name for own, name in pairs if counts[0][own] == counts[1][name] == 1}


def _once(items: Mapping[str, Scored], texts: Callable[[Scored], set[str]]) -> dict[str, str]:
    """The name of the item that alone has a text."""
    places: dict[str, list[str]] = {}
    for name, item in items.items():
        for text in texts(item):
            if len(text) >= LEAST_WITHIN:
                places.setdefault(text, []).append(name)
    return {text: names[0] for text, names in places.items() if len(names) == 1}


def clusters_of(found: Aligned, column: str) -> dict[str, str]:
    """The cluster of each item: the value of a field or, without one, what items share.

    Raises:
        UserError: no item has the field.
    """
    every = found.every
    alone = {name: name for name in every}
    if column == ALONE:
        return alone
    if named := column or next((side.log.cluster for side in found.sides if side.log.cluster), ""):
        values = values_of(found, named, "each counts as its own cluster")
        return {name: values.get(name, f"item {name}") for name in every}
    shared = _components(every)
    sizes = Counter(shared.values())
    dependent = sum(count for count in sizes.values() if count > 1)
    if not dependent:
        return alone
    few = len(sizes) < FEWEST
    found.said.append(
        f"{dependent:,} of {len(every):,} items have equal texts, or share a long beginning or "
        f"field, in {len(sizes):,} clusters: "
        + (
            "too few to be the unit, so the unit is the item; if they depend on each other, "
            "intervals are too narrow"
            if few
            else f"these are the unit; --cluster names another one (--cluster {ALONE}: none)"
        )
    )
    return alone if few else shared


def values_of(found: Aligned, column: str, otherwise: str) -> dict[str, str]:
    """The value of a field in each item that has one, from the first log that does.

    Raises:
        UserError: no item has it.
    """
    values: dict[str, str] = {}
    known: set[str] = set()
    for side in found.sides:
        for name, item in side.items.items():
            fields = {**item.fields, **({"task": item.task} if item.task else {})}
            known |= fields.keys()
            value = fields.get(column)
            if isinstance(value, str | int | float) and str(value) not in ("", "nan"):
                values.setdefault(name, str(value))
    if not values:
        listed = one_line(", ".join(sorted(known)), 200) or "none"
        raise UserError(f"no item has a field {one_line(column)!r}; expected one of {listed}")
    if missing := len(found.every) - len(values):
        found.said.append(f"{missing:,} items have no {one_line(column)}; {otherwise}")
    return values


def _components(every: Mapping[str, Scored]) -> dict[str, str]:
    """A name for each group of items that share something, whatever connects them."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    place = {name: number for number, name in enumerate(every)}
    links = np.array([(place[one], place[other]) for one, other in _links(every)], int)
    ends = tuple(links.reshape(-1, 2).T)
    graph = coo_array((np.ones(len(links)), ends), (len(every), len(every)))
    return {name: str(own) for name, own in zip(every, connected_components(graph)[1], strict=True)}


def _links(every: Mapping[str, Scored]) -> Iterator[tuple[str, str]]:
    """Items of which one shares a text, a long field or a long beginning with the other."""
    asked: dict[str, str] = {}
    places: dict[tuple[str, str], list[str]] = {}
    for name, item in every.items():
        texts = {key: own for key, own in item.fields.items() if isinstance(own, str)}
        longest = max(texts.values(), key=len, default="") if item.document else ""
        asked[name] = " ".join((longest or item.text).split())
        if asked[name]:
            places.setdefault(("", asked[name]), []).append(name)
        for key, own in texts.items():
            if len(own) >= LEAST_STEM and own != longest:
                places.setdefault((key, own), []).append(name)
    for names in places.values():
        if len(names) < len(every):  # what all have distinguishes none
            yield from ((names[0], other) for other in names[1:])
    start = len(commonprefix(list(asked.values())))  # noqa: RUF071
    for one, other in pairwise(sorted(asked, key=lambda name: asked[name])):
        both = [asked[name][start:] for name in (one, other)]
        shared = len(commonprefix(both))  # noqa: RUF071
        if shared >= LEAST_STEM and 2 * shared >= min(map(len, both)):
            yield one, other
