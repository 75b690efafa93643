"""Which items of several logs are the same, and which depend on each other.

1. Items with the same id in two logs are the same only if their texts are: equal, one within the
   other (such as a question in its prompt), or from the same document.
2. If ids have nothing in common, or on request, items are paired by texts that occur once.
3. Ids that agree while most texts do not look like chance, and are refused.
4. Items depend on each other if they have equal texts, or share a long beginning or a long field.
"""

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from os.path import commonprefix  # of letters

from interp.comparing.items import Item, Side
from interp.errors import UserError, one_line
from interp.statistics.clusters import FEWEST

LEAST_WITHIN, LEAST_STEM = 8, 50
"""Numbers of characters from which a text may be looked for within another, and from which a
shared beginning, or field, makes items dependent."""

ALONE = "item"
"""The name of a cluster for `--cluster` with which no items depend on each other."""


@dataclass
class Aligned:
    """The items of all logs under common names."""

    sides: Sequence[Side]
    items: list[dict[str, Item]] = field(default_factory=list)
    """Those of each log, by common name."""
    said: list[str] = field(default_factory=list)

    @property
    def every(self) -> dict[str, Item]:
        """Each item, from the first log that has it."""
        return {name: own for items in reversed(self.items) for name, own in items.items()}


def aligned(sides: Sequence[Side], *, by_text: bool = False) -> Aligned:
    """The logs with common names of items: those of the first log, or of the first that has one.

    Raises:
        UserError: a log has no items in common with those before it, or only by chance.
    """
    found = Aligned(sides)
    for side in sides:
        known = found.every
        names = _paired(found, known, side, by_text) if known else dict.fromkeys(side.items)
        found.items.append({shown or own: side.items[own] for own, shown in names.items()})
    return found


def _paired(
    found: Aligned, known: Mapping[str, Item], side: Side, by_text: bool
) -> Mapping[str, str | None]:
    """The common name of each item of a log, None for its own; others are not to be paired."""
    ids = [name for name in side.items if name in known]
    if by_text or not ids:
        return _paired_by_text(found, known, side)
    alike = {name: _same(known[name], side.items[name]) for name in ids}
    counts = Counter(alike.values())
    differing = [name for name in ids if alike[name] is False]
    first = found.sides[0].name
    if 2 * len(differing) > counts[True] + counts[False]:
        texts = len(_by_text(known).keys() & _by_text(side.items).keys())
        raise UserError(
            f"{len(ids):,} ids of {side.name} are also those of {first}, but {len(differing):,} of "
            f"their texts differ, such as {_both(known, side, differing[0])}, so pairing them "
            f"would be chance. {texts:,} texts occur once in both: pair them with --pair text, or "
            "compare logs of the same version, order and seed of the data"
        )
    if differing:
        found.said.append(
            f"{side.name}: {len(differing):,} ids have other texts than in {first} and are left "
            f"out, such as {_both(known, side, differing[0])}"
        )
    if counts[None]:
        found.said.append(
            f"{side.name}: {counts[None]:,} items are paired by id alone, since a log has no texts"
        )
    others = [n for n in ids if alike[n] and not _equal(known[n], side.items[n])]
    if others:
        found.said.append(
            f"{side.name}: {len(others):,} items are asked in another form than in {first} (such "
            "as other shots, another template, or a question alone)"
        )
    targets = [n for n in ids if alike[n] and _targets_differ(known[n], side.items[n])]
    if targets:
        found.said.append(
            f"{side.name}: {len(targets):,} items have another target than in {first}, such as "
            f"{one_line(targets[0], 40)}: their scores are not about the same answers"
        )
    return dict.fromkeys(name for name in side.items if alike.get(name) is not False)


def _both(known: Mapping[str, Item], side: Side, name: str) -> str:
    texts = (_plain(known[name]), _plain(side.items[name]))
    start = max(0, len(commonprefix(texts)) - 20)  # noqa: RUF071
    shown = " and ".join(repr(one_line(text[start:], 60)) for text in texts)
    return f"{one_line(name, 40)} ({shown})"


def _equal(one: Item, other: Item) -> bool:
    """Whether texts are equal but for spaces; most are the same, which is quicker to see."""
    return one.first.text == other.first.text or _plain(one) == _plain(other)


def _plain(item: Item) -> str:
    return " ".join(item.first.text.split())


def _same(one: Item, other: Item) -> bool | None:
    """Whether two items are the same; None if nothing tells."""
    a, b = one.first, other.first
    if a.document and a.document == b.document:
        return True
    if not a.text or not b.text:
        return None
    if _equal(one, other):
        return True
    texts = sorted((_plain(one), _plain(other)), key=len)
    if len(texts[0]) >= LEAST_WITHIN and texts[0] in texts[1]:
        return True
    return _plain(other) in _fields(one) or _plain(one) in _fields(other)


def _fields(item: Item) -> set[str]:
    """The texts in an item's document or metadata, one of which may be its question."""
    return {" ".join(own.split()) for own in item.first.fields.values() if isinstance(own, str)}


def _targets_differ(one: Item, other: Item) -> bool:
    """Whether targets differ in logs of one kind; kinds write the same target in different ways."""
    a, b = one.first, other.first
    alike = bool(a.document) == bool(b.document) and bool(a.epoch) == bool(b.epoch)
    return alike and bool(a.target and b.target) and a.target != b.target


def _by_text(items: Mapping[str, Item]) -> dict[str, str]:
    """The name of the item that alone has a text, or a field that may be its question."""
    places: dict[str, set[str]] = {}
    for name, item in items.items():
        for text in {_plain(item), *(_fields(item) if item.first.document else ())}:
            if len(text) >= LEAST_WITHIN:
                places.setdefault(text, set()).add(name)
    return {text: min(names) for text, names in places.items() if len(names) == 1}


def _paired_by_text(found: Aligned, known: Mapping[str, Item], side: Side) -> dict[str, str]:
    """The common name of each item whose text occurs once in both; others have their own."""
    there = _by_text(known)
    names = {own: there[text] for text, own in _by_text(side.items).items() if text in there}
    again = {name for name, count in Counter(names.values()).items() if count > 1}
    names = {own: name for own, name in names.items() if name not in again}
    if not names:
        raise UserError(
            f"{side.name} has no item of {found.sides[0].name}: no id and no text is in both; "
            "compare logs of the same task, with texts or the tool's ids"
        )
    found.said.append(
        f"{side.name}: items are paired by texts that occur once in both logs, not by ids"
    )
    return {own: names.get(own, f"{own} ({side.name})") for own in side.items}


def clusters_of(found: Aligned, column: str) -> dict[str, Hashable]:
    """The cluster of each item: the value of a field or, without one, what items share.

    Raises:
        UserError: no item has the field.
    """
    every = found.every
    own = next((side.cluster for side in found.sides if side.cluster), "")
    if column == ALONE:
        return {name: name for name in every}
    if named := column or own:
        values = values_of(found, named)
        if missing := len(every) - len(values):
            found.said.append(f"{missing:,} items have no {named}; each counts as its own cluster")
        return {name: values.get(name, f"item {name}") for name in every}
    shared = _components(every)
    sizes = Counter(shared.values())
    dependent = sum(count for count in sizes.values() if count > 1)
    if not dependent:
        return {name: name for name in every}
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
    return {name: name for name in every} if few else dict(shared)


def values_of(found: Aligned, column: str) -> dict[str, str]:
    """The value of a field in each item that has one, from the first log that does.

    Raises:
        UserError: no item has it.
    """
    values: dict[str, str] = {}
    known: set[str] = set()
    for items in found.items:
        for name, item in items.items():
            fields = {**item.first.fields, **({"task": item.first.task} if item.first.task else {})}
            known |= fields.keys()
            value = fields.get(column)
            if isinstance(value, str | int | float) and str(value) not in ("", "nan"):
                values.setdefault(name, str(value))
    if not values:
        listed = one_line(", ".join(sorted(known)), 200) or "none"
        raise UserError(f"no item has a field {one_line(column)!r}; expected one of {listed}")
    return values


def _components(every: Mapping[str, Item]) -> dict[str, str]:
    """A name for each group of items that share something, whatever connects them."""
    root = {name: name for name in every}

    def of(name: str) -> str:
        while root[name] != name:
            root[name] = root[root[name]]
            name = root[name]
        return name

    for one, other in _links(every):
        root[of(other)] = of(one)
    return {name: of(name) for name in every}


def _links(every: Mapping[str, Item]) -> Iterator[tuple[str, str]]:
    """Items of which one shares a text, a long field or a long beginning with the other."""
    asked: dict[str, str] = {}
    places: dict[tuple[str, str], list[str]] = {}
    for name, item in every.items():
        first = item.first
        texts = {key: own for key, own in first.fields.items() if isinstance(own, str)}
        longest = max(texts.values(), key=len, default="") if first.document else ""
        asked[name] = " ".join((longest or first.text).split())
        if asked[name]:
            places.setdefault(("", asked[name]), []).append(name)
        for key, own in texts.items():
            if len(own) >= LEAST_STEM and own != longest:
                places.setdefault((key, own), []).append(name)
    for names in places.values():
        if len(names) < len(every):  # what all have distinguishes none
            yield from ((names[0], other) for other in names[1:])
    start = len(commonprefix(list(asked.values())))  # noqa: RUF071
    order = sorted(asked, key=lambda name: asked[name])
    for one, other in pairwise(order):
        both = [asked[name][start:] for name in (one, other)]
        shared = len(commonprefix(both))  # noqa: RUF071
        if shared >= LEAST_STEM and 2 * shared >= min(map(len, both)):
            yield one, other


def told_settings(sides: Iterable[Side]) -> Iterator[str]:
    """Settings of the tools that differ between logs."""
    every = list(sides)
    for key in dict.fromkeys(key for side in every for key in side.settings):
        values = {side.name: side.settings[key] for side in every if key in side.settings}
        if len(set(values.values())) > 1:
            listed = ", ".join(f"{one_line(value, 60)} ({name})" for name, value in values.items())
            yield f"{re.sub('_', ' ', key)} differs: {listed}"
