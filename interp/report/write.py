"""A report as files: one HTML page that needs no network, its tables and figures next to it."""

import io
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
import pandas as pd
from markupsafe import Markup, escape
from matplotlib.figure import Figure

# Letters are drawn as outlines: the figure looks the same wherever it is opened, whatever fonts
# are there.
_FONTTYPE = "path"


def figure_svg(figure: Figure, *, name: str) -> str:
    """An SVG file's text, the same bytes for the same figure; `name` seeds its ids."""
    file = io.StringIO()
    with mpl.rc_context({"svg.fonttype": _FONTTYPE, "svg.hashsalt": name}):
        figure.savefig(file, format="svg", metadata={"Date": None})
    return file.getvalue()


def inline_svg(svg: str, *, name: str, label: str) -> Markup:
    """The <svg> element for a page, with ids that are unique to `name` and a label for readers.

    Matplotlib numbers its ids from one in each file; on one page, clip paths and markers of one
    figure would be taken for those of another. Its style sheet would apply to the whole page.
    """
    element = svg[svg.index("<svg") :]
    element = re.sub(
        r"<!--.*?-->|<metadata>.*?</metadata>|<style.*?</style>", "", element, flags=re.S
    )
    element = re.sub(r'((?:\bid="|href="#|url\(#))', rf"\g<1>{name}-", element)
    labelled = f'<svg role="img" aria-label="{escape(label)}" '
    return Markup(element.replace("<svg ", labelled, 1))


_BIBTEX = """\
@software{{interp,
  title = {{interp: attribution and mechanistic interpretability on reasoning prompts in pairs}},
  author = {{{{The interp developers}}}},
  version = {{{version}}},
  year = {{{year}}}
}}"""


@dataclass(frozen=True)
class Provenance:
    """What the record of a run or study says of all of its calls."""

    measured: str
    """The day, or the first and the last one, in UTC."""
    versions: tuple[str, ...]
    """Of interp."""
    commands: tuple[str, ...]
    """Command lines, without repetition; none for calls from Python."""

    @property
    def bibtex(self) -> str:
        """The entry by which interp is cited: its last version, and the year of measuring."""
        return _BIBTEX.format(version=self.versions[-1], year=self.measured[-10:-6])


def provenance(record: Mapping[str, Any]) -> Provenance | None:
    """The provenance of what a record is about; None where it names no call.

    Args:
        record: run.json or study.json.
    """
    calls = record.get("history", [])
    if not calls:
        return None
    days = sorted(
        time[:10] for call in calls for time in (call["started"], call["finished"]) if time
    )
    return Provenance(
        " to ".join(dict.fromkeys((days[0], days[-1]))),
        tuple(dict.fromkeys(call["versions"].get("interp", "unknown") for call in calls)),
        tuple(dict.fromkeys(call["command"] for call in calls if call["command"])),
    )


TERMS: Mapping[str, str] = {
    "accuracy": "share of prompts whose most probable answer is the correct one",
    "paired accuracy": "share of pairs, or groups, of which every prompt is answered correctly",
    "side": "which member of its pair a prompt is, such as rulebreaker and non_rulebreaker",
    "segment": "a named part of a prompt: premise1 in tables is premise 1 in figures",
    "score": "what an attribution method gives a token or a segment, raw and with its sign",
    "share": "a score's part of the sum of absolute scores of the whole prompt, from 0 to 1",
    "ratio": "mean score of a token of one segment over that of another; 1 where they are equal",
    "unnormalized": "summed score of one segment over that of another, where a ratio compares "
    "means of tokens; it grows with length",
    "effect": "how much a patch or a replaced segment changes the difference of two answers, in "
    "logits",
    "recovered": "an effect as a share of the difference between the two prompts of a pair; it may "
    "exceed 1",
    "familiarity": "the probability that a model gives a fact when it is asked for it alone",
    "perplexity": "exponential of the mean negative log probability of a token of the prompt",
    "cluster": "prompts that share what they are about, and are one observation of a test",
    "low": "lower end of the 95% interval; the upper end is high",
    "p holm": "p corrected by Holm's method over the tests that were made together; where a table "
    "has a column family, within each of its families",
    "organism": "a small packaged model that was trained to have a known cause of its answers",
    "undefined": "a statistic without a value; the note of its row or table says why",
}
"""What each word means, and what else the page calls it."""


def glossary(text: str, own: Mapping[str, str]) -> pd.DataFrame:
    """The words that a page uses, with their meanings, in alphabetical order.

    Args:
        text: the page's texts and headings.
        own: words of the study, with their meanings, which are all on its page.
    """
    words = {word: meaning for word, meaning in TERMS.items() if _occurs(word, text)} | {**own}
    used = sorted(words, key=str.lower)
    return pd.DataFrame({"name": used, "meaning": [words[word] for word in used]}, dtype=object)


def _occurs(word: str, text: str) -> bool:
    return re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", text, re.IGNORECASE) is not None
