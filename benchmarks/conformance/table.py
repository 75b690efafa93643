"""The table of the page."""

from collections.abc import Collection

from benchmarks.conformance.cells import ABSENT, NAMES, NO, RAISES, UNCLAIMED, YES, Cell


def table_of(cells: Collection[Cell]) -> str:
    """A row for each library and a column for each claim: in how many types it holds.

    A cell has the number of types in which the claim holds, of those in which it could be asked,
    and behind it in how many it does not, or the library raises an exception.
    """
    libraries = list(dict.fromkeys(cell.library for cell in cells))
    rows = [["library", *NAMES], ["---"] * (len(NAMES) + 1)]
    for library in libraries:
        row = [library]
        for name in NAMES:
            own = [cell.outcome for cell in cells if (cell.library, cell.claim) == (library, name)]
            row.append(_counts(own))
        rows.append(row)
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def _counts(outcomes: list[str]) -> str:
    asked = [own for own in outcomes if own != UNCLAIMED]
    if not asked:
        return ""
    if set(asked) == {ABSENT}:
        return "not importable"
    text = f"{asked.count(YES)} of {len(asked)}"
    parts = [f"**{asked.count(NO)} no**"] if NO in asked else []
    parts += [f"{asked.count(RAISES)} raise"] if RAISES in asked else []
    return ", ".join([text, *parts])
