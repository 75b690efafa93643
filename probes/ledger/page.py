"""The page of the ledger: bars, curves over layers, and the tables behind them.

Of failures in fewer than `FEWEST` clusters, it shows counts rather than shares and bars.
"""

from collections.abc import Iterator
from functools import partial

import pandas as pd
from matplotlib.axes import Axes

from interp import StudyFolder
from interp.extend import counted, page
from interp.extend.cautions import void_models
from interp.extend.figures import QUIET, WIDTH, Picture, curve, grouped_bars, house_style, new_axes
from interp.extend.results import ENTRIES, READINGS, STEERING
from interp.extend.statistics import FEWEST, LEVEL
from interp_probes.ledger.results import WRONG, LedgerResults, read_ledger

SHOWN = (*ENTRIES[:3], WRONG)
"""The entries of failures, in order."""

_TEXT = (
    "Each prompt is about a fact. known: the model completes the fact outside the prompt, in the "
    "wording in which it completes the largest share of the other half's facts (table Facts "
    "completed, by wording). "
    "retrieved: the fact's answer can be read in the prompt, at {read}. used: exchanging it at "
    "{change} moves the model's answer more than random directions of the same norm do. A failure "
    "is a wrong answer; its entry is the first of the three steps that is missing. Intervals are "
    "95%, over clusters of prompts: {clusters}."
)

LIMITS = (
    "A fact that is not completed in this wording may be known. The wording is chosen on facts "
    "that it does not judge: clusters are halved, so that the best of several wordings does not "
    f"flatter the model. The verdicts retrieved and used err in {1 - LEVEL:.0%} of cases by "
    "design (retrieved_error and used_error: as measured). Shares are as counted; their intervals "
    "also reach over those of the shares without these errors, if what is retrieved or used is "
    "always found. Where the "
    "right word stands in the prompt before the token (seen), a reading may be a copy. Effects "
    "are averaged over the layers that were changed, so a fact that is used at few of them may be "
    "missed. Prompts are not weighted."
)
"""What the entries do not show."""

_BAR = (
    "Bars: shares of a model's failures; whiskers: their 95% intervals. n counts failures. The "
    f"verdicts behind the parts err in {1 - LEVEL:.0%} of cases by design; the intervals allow for "
    "this, the bars do not."
)

_CURVES = (
    "Above (read): share of readings in which the right word comes first, and the same from the "
    "token's embedding alone. Below (used): what exchanging the word at this layer does to the "
    "answer, minus what random directions of the same norm do. Bands are 95% intervals over "
    "clusters. A word that can be read need not be used."
)


def report_of(folder: StudyFolder) -> page.Report:
    """The report on a study, finished or not (UserError: a measurement is missing)."""
    results = read_ledger(folder)
    parameters = {
        name: (run.measured.about.parameters["roles"] or ["the last token"])[0]
        for name, run in (("read", results.read), ("change", results.steered))
    }
    return page.Report(
        title="The ledger of facts",
        text=_TEXT.format(**parameters, clusters=results.clusters),
        glance=_first_screen(results),
        sections=(*ledger_sections(results),),
        record=folder.provenance(),
        problems=tuple(folder.problems()),
        browser=results.steered.browser().beside(results.read.browser()),
    )


def _first_screen(results: LedgerResults) -> page.Glance:
    prompts, facts = (results.entries[name].nunique() for name in ("prompt_id", "fact"))
    question = (
        "Does a model that fails not complete the fact either, or does it not use what it knows? "
        f"{counted(len(results.models), 'model')}, {counted(prompts, 'prompt')} about "
        f"{counted(facts, 'fact')}."
    )
    numbers = page.quotable(_headline(results), results.cautions, SHOWN)
    figure = next(iter(share_figures(results, "at_a_glance")), None)
    return page.glance(
        question,
        numbers,
        sentences(results)[: page.MOST_SENTENCES],
        figure=figure,
        drawn=() if figure is None else None,
        cautions=results.cautions,
    )


def _headline(results: LedgerResults) -> pd.DataFrame:
    """The share of each entry among each model's failures; without a value if there are none."""
    parts, failures = [], _with_words(results.failures)
    for entry in SHOWN:
        entries = failures[failures["entry"] == entry].set_index("model")
        entries = entries.reindex(results.models).rename_axis("model").reset_index()
        few = entries["clusters"] < FEWEST
        note = entries["share"].isna().map({True: "no failure with an entry", False: ""})
        note = note.mask(few, entries["said"])
        table = entries.assign(note=note, **{name: entries[name].mask(few) for name in _NUMBERS})
        parts.append(page.headline(table, entry, value="share", n="n", unit="failures"))
    return pd.concat(parts, ignore_index=True)


def sentences(results: LedgerResults) -> list[str]:
    """One sentence on each model whose answers depend on its prompts."""
    void, said, failures = void_models(results.cautions), [], _with_words(results.failures)
    for model in results.models:
        rows = failures[failures["model"] == model]
        if model in void:
            continue
        if rows.empty:
            n = int((results.answers["model"] == model).sum())
            said.append(f"{model}: no failure has an entry; n = {counted(n, 'prompt')}.")
            continue
        first, second, third, last = rows.set_index("entry")["short"][[*SHOWN]]
        said.append(
            f"{model}: {first} of failures not completed in this wording, {second} not retrieved, "
            f"{third} not used, {last} used and still wrong; "
            f"n = {counted(int(rows['n'].iloc[0]), 'failure')}."
        )
    return said


def share_figures(results: LedgerResults, name: str) -> tuple[page.FigureItem, ...]:
    """The bars of the models whose failures are in enough clusters, if there are any."""
    title, rows = "Failures by the first step that is missing", results.failures
    rows = rows[rows["clusters"] >= FEWEST]
    return (page.FigureItem(name, title, partial(entry_bars, rows), _BAR),) * bool(len(rows))


def ledger_sections(results: LedgerResults) -> Iterator[page.Section]:
    """Shares by model and parts of the prompts, and curves over layers."""
    shares = page.TableItem(
        "ledger_shares",
        "Failures by the first step that is missing",
        results.shares,
        "One row per model and part of its prompts; n counts failures. The file also has the "
        "shares among right answers.",
        display=wide(results.shares),
    )
    wordings = page.TableItem(
        "wordings",
        "Facts completed, by wording",
        results.wordings,
        "Outside the prompts, by greedy completion. judging: for how many facts the ledger takes "
        "this wording; it is the one in which the model completes the largest share of the facts "
        "of the other half, of equal ones the first.",
    )
    retrieved = page.TableItem(
        "retrieved",
        "Retrieved, by side",
        results.sides,
        "Share of prompts in which the fact's answer is retrieved; embedding: from the token's "
        "embedding alone; seen: share of prompts in which it stands before the token. Where it "
        "does not, it cannot be a copy.",
    )
    title, each = "The ledger of each prompt", "One row per prompt."
    entries = page.TableItem("ledger", title, results.entries, each, folded=True)
    items = (shares, wordings, retrieved, entries)
    yield page.Section("Shares of failures", LIMITS, items)
    read, used, figures = results.read.summary(), results.used, []
    for number, model in enumerate(read["model"].unique(), start=1):
        rows = (part[part["model"] == model] for part in (read, used))
        name, title = f"read_and_used_{number}", f"Read and used, layer by layer: {model}"
        figures.append(page.FigureItem(name, title, partial(read_and_used, *rows), _CURVES))
    title = "Used, layer by layer; what is read stands in reading_table.csv of the stage readings"
    yield page.Section(
        "Read and used, layer by layer",
        "At which layers can the fact's answer be read, and at which does it decide?",
        (*figures, page.TableItem("used", title, used, STEERING.text, folded=True)),
    )


def wide(shares: pd.DataFrame) -> pd.DataFrame:
    """One row per model and part of its failures: each share with its interval, or a count."""
    rows = _with_words(shares[shares["answered"] == "wrong"])
    keys = ["model", "factor", "value"]
    said = rows.pivot(index=keys, columns="entry", values="said").reindex(columns=SHOWN)
    first = rows.drop_duplicates(keys).set_index(keys)
    others = first[["retrieved_error", "used_error", "seen"]]
    return first[["n", "clusters"]].join(said).join(others).reset_index()


_NUMBERS = ("share", "low", "high")


def _with_words(shares: pd.DataFrame) -> pd.DataFrame:
    """Each share with its interval (said) and without (short); of few clusters, a count as both."""
    said, short = [], []
    for row in shares.to_dict("records"):
        count = f"{round(row['share'] * row['n'])} of {int(row['n'])}"
        few = row["clusters"] < FEWEST
        said.append(count if few else page.with_interval(*(float(row[name]) for name in _NUMBERS)))
        short.append(count if few else f"{row['share']:.0%}")
    return shares.assign(said=said, short=short)


def entry_bars(shares: pd.DataFrame) -> Axes:
    """A bar with its interval for each entry among the wrong answers of each model."""
    with house_style():
        ends, ax = ("low", "high"), new_axes(width=WIDTH, height=3.2)
        ax = grouped_bars(shares, x="model", y="share", hue="entry", n="n", interval=ends, ax=ax)
        ax.set_ylim(0, 1)
        ax.set_ylabel("share of failures")
        return ax


def read_and_used(read: pd.DataFrame, used: pd.DataFrame) -> Axes:
    """Above: how often the fact is read at each layer; below: what exchanging it there does.

    Of one model: rows of the table of readings, and of `LedgerResults.used`.
    """
    with house_style():
        figure = Picture(figsize=(WIDTH, 5.6))
        above: Axes
        below: Axes
        above, below = figure.subplots(2, 1, sharex=True)
    named = {"accuracy": "in the prompt", "embedding": "from the embedding alone"}
    curve(READINGS, read, x="layer", lines=named, ax=above)
    above.set_ylim(-0.02, 1.02)
    above.set_ylabel("read: right word first")
    lines = {"beyond": "beyond random directions"}
    curve(STEERING, used, x="layer", lines=lines, control="random directions", ax=below)
    below.axhline(0, color=QUIET, linewidth=1, linestyle="--")
    below.set_ylabel("used: logits")
    return below
