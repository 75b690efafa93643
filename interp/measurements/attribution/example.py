"""Pairs, shaded: a typical one, which attribution is known for, and each one in the browser."""

from collections.abc import Hashable, Iterator, Mapping
from typing import Any

import pandas as pd

from interp.analysis.accuracy import whole_pairs
from interp.choices import TEMPLATE
from interp.measurements.answers.show import Answered
from interp.measurements.attribution.segments import token_shares
from interp.report.formatting import segment_label
from interp.report.page import PictureItem
from interp.report.pairs import Panel, Shaded, Text, by_pair, side_bars, with_sides
from interp.results.measured import ResultTables

_NOTE = """The prompt whose {number} by {method} is the median of all prompts ({value:.3f}), and the
other side of its pair. {unit}"""

_TOKENS = "Each token is shaded by its share of the prompt's score."

_SEGMENTS = (
    "Each segment is shaded by its share of the prompt's score; with --keep-tokens, each token."
)


def typical_pair(result: Answered, ratios: pd.DataFrame | None) -> PictureItem | None:
    """The pair of the median prompt, shaded for the first model by its first method.

    The median is that of the ratio that the prompts' system compares or, without one, of the share
    of the segment with the largest mean share. None if no pair has scores on every side.
    """
    number, values = _judged(result, ratios)
    if values.empty:
        return None
    model, method = values[["model", "method"]].iloc[0]
    scored = values[(values["model"] == model) & (values["method"] == method)]
    prompts, answers = result.prompts, result.answers
    answers = answers[(answers["model"] == model) & (answers["error"] == "")]
    whole = whole_pairs(prompts, answers)
    scored = scored[scored["prompt_id"].isin(whole["prompt_id"])].dropna(subset="value")
    if scored.empty:
        return None
    scored = scored.sort_values("value", kind="stable")
    middle = scored.iloc[(len(scored) - 1) // 2]
    pairs = prompts.set_index("prompt_id")["pair_id"]
    pair = prompts[prompts["pair_id"] == pairs[middle["prompt_id"]]]
    shares, unit = _shares(result, pair, str(model), str(method))
    if set(pair["prompt_id"]) - set(shares["prompt_id"]):
        return None
    from interp.report.html import token_heat_map

    compared = result.measured.about.ratio
    html = token_heat_map(
        shares, prompts=pair, answers=answers, method=str(method), compared=compared
    )
    note = _NOTE.format(number=number, method=method, value=middle["value"], unit=unit)
    return PictureItem("typical_pair", f"A typical pair: {middle['prompt_id']}", html, note)


def _judged(result: Answered, ratios: pd.DataFrame | None) -> tuple[str, pd.DataFrame]:
    """The name of the number that makes a prompt typical, and its value for each prompt."""
    if result.measured.about.ratio is not None and ratios is not None:
        ratios = ratios.rename(columns={"ratio": "value"})
        above, below = map(segment_label, result.measured.about.ratio)
        return f"{above} over {below}", ratios[["model", "method", "prompt_id", "value"]]
    columns = ["model", "method", "prompt_id", "segment", "share"]
    scores = result.table("segment_scores", columns)
    scores = scores[scores["segment"] != TEMPLATE].rename(columns={"share": "value"})
    means = scores.groupby("segment", sort=False)["value"].mean()
    if means.isna().all():
        return "", scores.iloc[:0]
    largest = str(means.idxmax())
    return f"share of {segment_label(largest)}", scores[scores["segment"] == largest]


def _shares(
    result: Answered, pair: pd.DataFrame, model: str, method: str
) -> tuple[pd.DataFrame, str]:
    """The shares of the pair's tokens, or of its segments, and a sentence about them."""

    def own(name: str) -> pd.DataFrame:
        rows = result.measured.table(name, prompts=list(pair["prompt_id"]))
        rows = rows[rows["model"] == model]
        return rows[rows["method"] == method] if "method" in rows else rows

    if "token_scores" in result.measured.names() and len(scores := own("token_scores")):
        return token_shares(scores, own("tokens")), _TOKENS
    scores = own("segment_scores")
    parts = [
        piece
        for prompt in pair.to_dict("records")
        for piece in _pieces(prompt, scores[scores["prompt_id"] == prompt["prompt_id"]])
    ]
    return pd.DataFrame(parts).assign(model=model, method=method), _SEGMENTS


def _pieces(prompt: Mapping[Hashable, Any], scores: pd.DataFrame) -> Iterator[dict[str, object]]:
    """A prompt's text in pieces: its segments with their shares, and the text between them.

    Segments outside the text, such as a system prompt, come first, as "…". The share of everything
    outside the segments belongs to no single piece; it is that of an empty one at the end.
    """
    share = scores.set_index("segment")["share"].astype(float)
    text, end = str(prompt["text"]), 0
    places = {name: prompt.get(f"{name}_start") for name in share.index if name != TEMPLATE}
    inside = {name: int(at) for name, at in places.items() if pd.notna(at)}
    named = [(name, "…", share[name]) for name in places if name not in inside]
    for name, start in sorted(inside.items(), key=lambda place: place[1]):
        stop = int(prompt[f"{name}_end"])
        named += [(TEMPLATE, text[end:start], float("nan")), (name, text[start:stop], share[name])]
        end = stop
    named += [(TEMPLATE, text[end:], float("nan")), (TEMPLATE, "", share.get(TEMPLATE, 0.0))]
    for position, (name, piece, value) in enumerate(named):
        key = {"prompt_id": prompt["prompt_id"], "position": position}
        yield {**key, "token": piece, "segment": name, "share": value}


_SHARES = "Each {}'s share of the sizes of all scores in its prompt."


def attribution_panels(
    measured: ResultTables, prompts: pd.DataFrame
) -> Iterator[tuple[str, Panel]]:
    """Shaded tokens, if they were kept, and the shares of segments, by model and method."""
    ids = prompts["prompt_id"]
    if "token_scores" in measured.names():
        scores, tokens = (measured.table(name, prompts=ids) for name in ("token_scores", "tokens"))
        shares = token_shares(scores, tokens).sort_values("position", kind="stable")
        labels = shares["segment"].map(segment_label).mask(shares["segment"] == TEMPLATE, "")
        shares = with_sides(shares.assign(label=labels), prompts)
        for pair, of, members in by_pair(shares, ["model", "method"]):
            texts = [
                Text(str(side), *(rows[name].tolist() for name in ("token", "share", "label")))
                for side, rows in members.groupby("side", sort=False)
            ]
            yield pair, Shaded("Shading by tokens", of, texts, note=_SHARES.format("token"))
    columns = ["model", "method", "prompt_id", "segment", "share"]
    rows = with_sides(measured.table("segment_scores", columns, prompts=ids), prompts)
    rows["label"] = rows["segment"].map(segment_label)
    by, note = ["model", "method"], _SHARES.format("segment")
    yield from side_bars("Shares of segments", rows, by, label="label", value="share", note=note)
