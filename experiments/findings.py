"""Findings: comparisons that a study names in advance, and sentences shared by the studies."""

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace

import pandas as pd

from interp.extend import counted, page, statistics
from interp.extend.cautions import Caution


def opening(
    question: str,
    every: pd.DataFrame,
    cautions: Sequence[Caution],
    models: Collection[str],
    said: Sequence[str],
    *,
    leading: str,
    before: Sequence[str] = (),
    drawn: Sequence[str] = (),
) -> page.Glance:
    """The first screen of a study: the headline numbers `every` and at most five sentences.

    Numbers of models that do not read their prompts are blank: those in `drawn`, which the figure
    shows, or all. The sentence on the number `leading` of the `models` comes between those `before`
    and those `said`; none if only such models have it.
    """
    numbers = page.quotable(every, cautions, drawn or every["number"].unique())
    kept, measured = (rows[rows["model"].isin(models)] for rows in (numbers, every))
    first = [page.extremes(kept, leading)] if leading in page.named_numbers(measured, kept) else []
    sentences = [*before, *first, *said][: page.MOST_SENTENCES]
    has_drawn = numbers.loc[numbers["number"].isin(drawn), "value"].notna().any()
    shown = drawn if has_drawn else None
    return page.glance(question, numbers, sentences, drawn=shown, cautions=cautions)


def family_table(
    comparisons: Iterable[tuple[Mapping[str, object], statistics.Difference]], keys: Iterable[str]
) -> pd.DataFrame:
    """One row per comparison: its keys, and the fields of its `Difference`.

    The column p_holm, next to p, is p corrected across all rows (Holm, 1979). The column verdict,
    next to excluded_above, is that of `interp.statistics.decisions.verdicts`.
    """
    rows = [{**where, **asdict(difference)} for where, difference in comparisons]
    table = pd.DataFrame(rows, columns=[*keys, *statistics.Difference.__dataclass_fields__])
    table = statistics.holm(table, family="named").drop(columns=["family", "family_size"])
    place = list(table.columns).index("excluded_above") + 1
    table.insert(place, "verdict", statistics.verdicts(table))
    return table


EXPLORATORY = (
    "The rest of this page is exploratory. p_holm is corrected across the tests of one family "
    "(column family). With several families, more than 5% of reports contain an exploratory "
    "finding even if nothing differs (docs/statistics.md gives the share), so confirm any such "
    "finding in another run."
)
"""Separates the comparisons named in advance from all other tests."""


def named_section(table: pd.DataFrame, item: page.TableItem, text: str = "") -> page.Section:
    """Comparisons named in advance, rows of `family_table`, and the item with all of them."""
    tested = (table["verdict"] != statistics.UNTESTED).sum()
    counts = f"{counted(len(table), 'comparison')} were named, of which {tested:,} could be tested."
    how = (
        "These comparisons were named in the code before any model was measured. p is corrected "
        "across all of them by Holm's method, so the chance of any false finding among them is at "
        "most 5%. Brackets hold 95% intervals. A difference counts as shown if p is below "
        f"{statistics.SIGNIFICANT:g}. The smallest difference of interest is "
        f"{statistics.SMALLEST:g}; if no difference is shown, two one-sided tests, each at 5% and "
        "not corrected, exclude all differences outside the given range."
    )
    paragraphs = [f"{how} {counts}", text]
    shown = replace(item, display=_with_intervals(item.frame))
    return page.Section("Findings", "\n\n".join(filter(None, paragraphs)), (shown,))


def _with_intervals(table: pd.DataFrame) -> pd.DataFrame:
    """What a page shows of comparisons: what is compared, and the result beside it."""
    before = list(table.columns)[: list(table.columns).index("difference")]
    keys = ["name", "n"] if "name" in table else before
    ends = table[["difference", "low", "high"]].to_numpy(dtype=float)
    texts = [page.with_interval(*map(float, row)) for row in ends]
    shown = [*keys, "difference", "p_holm", "verdict", "note"]
    return table.assign(difference=texts).filter(items=shown)


def in_brief(rows: pd.DataFrame, subject: str, *, ordered: bool = True) -> str:
    """At most 25 words on comparisons: rows of `family_table` with name, and n in words.

    If none shows a difference, or none could (`out_of_reach`), it gives the range of differences
    that at least one leaves open, the smallest p, and the n of the comparison with the fewest
    clusters. The sign is told if it is meaningful (`ordered`): not between models.
    """
    tested = rows[rows["verdict"] != statistics.UNTESTED]
    if tested.empty:
        most = rows.iloc[int(rows["clusters"].argmax())]
        number = counted(len(rows), "comparison")
        return f"{subject}: too few clusters to test {number} (at most {most['n']})."
    shown = tested[tested["verdict"] == statistics.DIFFERENT]
    if shown.empty:
        low, high = tested["excluded_below"].min(), tested["excluded_above"].max()
        fewest = tested.iloc[int(tested["clusters"].argmin())]
        smallest = tested["p_holm"].min()
        p = "p = 1" if smallest > 0.9995 else _p(smallest).replace("p ", "p ≥ ")
        could = "can be " * bool(statistics.out_of_reach(tested).all())
        return (
            f"{subject}: no difference {could}shown in {counted(len(tested), 'comparison')}; "
            f"{page.signed(low)} to {page.signed(high)} not excluded, "
            f"{p}, {fewest['n']}."
        )
    if len(tested) == 1:
        (only,) = tested.to_dict("records")
        return f"{subject}: {only['name']}, {_estimate(only)}, {only['n']}."
    above, below = ((shown["difference"] * sign > 0).sum() for sign in (1, -1))
    how_many = f"{above} of {len(tested)} above, {below} below"
    if not ordered:
        how_many = f"{above + below} of {len(tested)} differ"
    largest = shown.iloc[int(shown["difference"].abs().argmax())].to_dict()
    return (
        f"{subject}: {how_many}; largest {largest['name']}: {_estimate(largest)}, {largest['n']}."
    )


def _estimate(row: Mapping[Hashable, object]) -> str:
    difference, low, high, p = (
        float(str(row[name])) for name in ("difference", "low", "high", "p_holm")
    )
    return f"{page.signed(difference)} [{page.signed(low)}, {page.signed(high)}], {_p(p)}"


def _p(p: float) -> str:
    return "p < 0.0001" if p < 0.0001 else f"p {p:.4f}" if p < 0.001 else f"p {p:.3f}"
