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


def every(sides: Sequence[Side]) -> dict[str, Scored]:
    """Each item, from the first log that has it."""
    return {name: item for side in reversed(sides) for name, item in side.items.items()}


def aligned(sides: Sequence[Side], said: list[str], *, by_text: bool = False) -> list[Side]:
    """The logs with common names of items: those of the first log, or of the first that has one.

    Notes on the pairing are added to `said`.

    Raises:
        UserError: a log has no items in common with those before it, or only by chance.
    """
    found: list[Side] = []
    for side in sides:
        names = (
            _paired(found, side, by_text, said) if found else {name: name for name in side.items}
        )
        items = {name: side.items[before] for before, name in names.items()}
        scores = side.scores.loc[[*names]].set_axis([*items])
        found.append(side._replace(items=items, scores=scores))
    return found


def _paired(sides: Sequence[Side], side: Side, by_text: bool, said: list[str]) -> Mapping[str, str]:
    """The common name of each item of a log; others are not to be paired."""
    known, here = every(sides), side.items
    ids = [name for name in here if name in known]
    before = sides[0].name if len(sides) == 1 else "a log before it"
    if by_text or not ids:
        pairs = _pairs_by_text(known, here)
        if not pairs:
            raise UserError(
                f"{side.name} has no item of {before}: no id and no text is in both; compare logs "
                "of the same task, with texts or the tool's ids"
            )
        said.append(
            f"{side.name}: items are paired by texts that occur once in both logs, not by ids"
        )
        return {name: pairs.get(name, f"{name} ({side.name})") for name in here}
    alike = {name: _same(known[name], here[name]) for name in ids}
    same, unknown, differing = (
        [name for name in ids if alike[name] is kind] for kind in (True, None, False)
    )
    if len(differing) > len(same):
        raise UserError(
            f"{len(ids):,} ids of {side.name} are also those of {before}, but {len(differing):,} "
            f"of their texts differ, such as {_both(known, here, differing[0])}, so pairing them "
            f"would be chance. {len(_pairs_by_text(known, here)):,} texts occur once in both: pair "
            "them with --pair text, or compare logs of the same version, order and seed of the data"
        )
    reworded = [name for name in same if _plain(known[name]) != _plain(here[name])]
    aimed = [name for name in same if _targets_differ(known[name], here[name])]
    for names, note in (
        (differing, f"ids have other texts than in {before} and are left out"),
        (unknown, "items are paired by id alone, since a log has no texts"),
        (reworded, f"items are asked in another form than in {before} (other shots, another "
         "template, or a question alone)"),
        (aimed, f"items have another target than in {before}, so that their scores are not about "
         "the same answers"),
    ):  # fmt: skip
        if names:
            example = _both(known, here, names[0])
            said.append(f"{side.name}: {len(names):,} {note}, such as {example}")
    return {name: name for name in here if alike.get(name) is not False}


def _both(known: Mapping[str, Scored], here: Mapping[str, Scored], name: str) -> str:
    """The id of an item, and its texts in two logs, from where they differ."""
    texts = (_plain(known[name]), _plain(here[name]))
    if texts[0] == texts[1] or not all(texts):
        return one_line(name, 40)
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
    kinds = [(bool(own.document), bool(own.epoch)) for own in (one, other)]
    targets = {one.target, other.target}
    return kinds[0] == kinds[1] and "" not in targets and len(targets) > 1


def _pairs_by_text(known: Mapping[str, Scored], here: Mapping[str, Scored]) -> dict[str, str]:
    """The names of items here, each with that of the only one known that is asked the same.

    Texts are compared with texts, documents with documents, and a field of either, which may be
    the question, with the other's text: two equal fields could be of different questions.
    """
    pairs = set()
    texts, documents = (lambda item: {_plain(item)}), (lambda item: {item.document})
    ways = [(texts, texts), (_fields, texts), (texts, _fields), (documents, documents)]
    for of_known, of_here in ways:
        there, own = _once(known, of_known), _once(here, of_here)
        pairs |= {(own[text], there[text]) for text in own.keys() & there.keys()}
    counts = [Counter(names) for names in zip(*pairs, strict=True)]
    return {own: name for own, name in pairs if counts[0][own] == counts[1][name] == 1}


def _once(items: Mapping[str, Scored], texts: Callable[[Scored], set[str]]) -> dict[str, str]:
    """The name of the item that alone has a text."""
    every = [(text, name) for name, item in items.items() for text in texts(item)]
    counts = Counter(text for text, _ in every)
    return {text: name for text, name in every if counts[text] == 1 and len(text) >= LEAST_WITHIN}


def clusters_of(sides: Sequence[Side], column: str, said: list[str]) -> dict[str, str]:
    """The cluster of each item: the value of a field or, without one, what items share.

    Raises:
        UserError: no item has the field.
    """
    items = every(sides)
    alone = {name: name for name in items}
    if column == ALONE:
        return alone
    if named := column or next((side.log.cluster for side in sides if side.log.cluster), ""):
        values = values_of(sides, named, "each counts as its own cluster", said)
        return {name: values.get(name, f"item {name}") for name in items}
    shared = _components(items)
    sizes = Counter(shared.values())
    dependent = sum(count for count in sizes.values() if count > 1)
    if not dependent:
        return alone
    few = len(sizes) < FEWEST
    told = f"these are the unit; --cluster names another one (--cluster {ALONE}: none)"
    if few:
        told = (
            "too few to be the unit, so the unit is the item; if they depend on each other, "
            "intervals are too narrow"
        )
    said.append(
        f"{dependent:,} of {len(items):,} items have equal texts, or share a long beginning or "
        f"field, in {len(sizes):,} clusters: {told}"
    )
    return alone if few else shared


def values_of(
    sides: Sequence[Side], column: str, otherwise: str, said: list[str]
) -> dict[str, str]:
    """The value of a field in each item that has one, from the first log that does.

    Raises:
        UserError: no item has it.
    """
    values: dict[str, str] = {}
    known: set[str] = set()
    for name, item in ((name, item) for side in sides for name, item in side.items.items()):
        fields = {**item.fields, **({"task": item.task} if item.task else {})}
        known |= fields.keys()
        value = fields.get(column)
        if isinstance(value, str | int | float) and str(value) not in ("", "nan"):
            values.setdefault(name, str(value))
    if not values:
        listed = one_line(", ".join(sorted(known)), 200) or "none"
        raise UserError(f"no item has a field {one_line(column)!r}; expected one of {listed}")
    if missing := len(every(sides)) - len(values):
        said.append(f"{missing:,} items have no {one_line(column)}; {otherwise}")
    return values


def _components(items: Mapping[str, Scored]) -> dict[str, str]:
    """A name for each group of items that share something, whatever connects them."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    place = {name: number for number, name in enumerate(items)}
    links = np.array([(place[one], place[other]) for one, other in _links(items)], int)
    ends = tuple(links.reshape(-1, 2).T)
    graph = coo_array((np.ones(len(links)), ends), (len(items), len(items)))
    return {name: str(own) for name, own in zip(items, connected_components(graph)[1], strict=True)}


def _links(items: Mapping[str, Scored]) -> Iterator[tuple[str, str]]:
    """Items of which one shares a text, a long field or a long beginning with the other."""
    asked: dict[str, str] = {}
    places: dict[tuple[str, str], list[str]] = {}
    for name, item in items.items():
        texts = {key: own for key, own in item.fields.items() if isinstance(own, str)}
        longest = max(texts.values(), key=len, default="") if item.document else ""
        asked[name] = " ".join((longest or item.text).split())
        if asked[name]:
            places.setdefault(("", asked[name]), []).append(name)
        for key, own in texts.items():
            if len(own) >= LEAST_STEM and own != longest:
                places.setdefault((key, own), []).append(name)
    for names in places.values():
        if len(names) < len(items):  # what all have distinguishes none
            yield from ((names[0], other) for other in names[1:])
    start = len(commonprefix(list(asked.values())))  # noqa: RUF071
    for one, other in pairwise(sorted(asked, key=lambda name: asked[name])):
        both = [asked[name][start:] for name in (one, other)]
        shared = len(commonprefix(both))  # noqa: RUF071
        if shared >= LEAST_STEM and 2 * shared >= min(map(len, both)):
            yield one, other
