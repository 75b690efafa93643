"""The files of a browser of pairs: its page, and its data in pieces, each loaded when it is needed.

A page that is opened from disk may load scripts but no data, so each piece is a script with one
call, `interpPairs(NAME, DATA)`. There are five kinds:

- index: the sides, the models, the columns, and how many pairs each of the other pieces holds.
- c0, c1, ...: a column of the list, such as a model's outcomes or a factor; its values are codes of
  a fixed number of letters, pair by pair, so that a column of 25,600 pairs takes at most 77 kB.
- s0, s1, ...: words, in order, each with the pairs in which it occurs (`interp.report.words`).
- r0, r1, ...: the ids of some pairs and the first words that distinguish their prompts.
- d0, d1, ...: everything about some pairs: prompts, answers and panels.
"""

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

import numpy as np
import pandas as pd

from interp.prompts.prompt_set import TAKEN
from interp.report.pairs import Browser, Number, panel_data
from interp.report.words import indexed, pairs_by_word
from interp.tables import factors_of

PIECES = "pairs"
"""The folder of the pieces."""

DETAIL, ROWS = 55_000, 1_800
"""Sizes in bytes to which pieces with details and with rows grow; a single pair may be larger."""

WORDS = 9_000
"""Size in bytes to which pieces with words grow."""

MOST_VALUES = 300
"""Largest number of values that a factor may have for readers to choose one from a list."""

AT_ONCE = 512
"""Number of pairs whose details are read at once."""

MOST_NUMBERS = 256
"""Largest number of columns with numbers; those of the largest mean size are kept."""

MOST_LETTERS = 60_000
"""Largest number of letters in the names of a factor's values."""

_WORDS = 48
"""Number of letters by which the list shows where the prompts of a pair differ."""

CODES = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789 !#$%'()*+,-./:;=?@[]^_`{|}~"
"""The digits of codes: the letters that stand in JSON and in HTML as they are."""

_RIGHT, _WRONG, _UNJUDGED, _SILENT = 1, 2, 3, 4
"""The outcome of a prompt: 0 if the model was not asked, 4 if it gave none of the options."""

_SIDES_A_CODE = 2
"""Number of sides whose outcomes one letter holds."""

Piece = tuple[str, Any]
"""A name and its data."""

Column = tuple[dict[str, Any], Any]
"""What the index says about a column, and the data of its piece."""


def pieces(browser: Browser, about: Mapping[str, Any]) -> Iterator[Piece]:
    """The pieces of a browser; the index, which also holds `about`, comes last."""
    prompts = browser.prompts
    sides = list(map(str, prompts["side"].unique()))
    models = list(map(str, browser.answers["model"].unique()))
    factors, numbers = filters_of(browser), _largest(browser.numbers)
    columns: list[dict[str, Any]] = []
    by_pair = _by_pair(prompts)
    made = (
        *(_outcomes(browser, model, sides, by_pair) for model in models),
        *(_factor(prompts, name, sides, by_pair) for name in factors),
        *(_number(number, by_pair) for number in numbers),
    )
    for place, (description, data) in enumerate(made):
        columns.append({**description, "piece": f"c{place}"})
        yield f"c{place}", data
    words, rows, details = [], [], []
    having = pairs_by_word(prompts, by_pair)
    for place, entries in enumerate(_packed(indexed(having, CODES), WORDS)):
        words.append(entries[0][0])
        yield f"s{place}", entries
    for place, group in enumerate(_packed(_rows(prompts, by_pair), ROWS)):
        rows.append(len(group))
        yield f"r{place}", group
    for place, group in enumerate(_packed(_details(browser, by_pair), DETAIL)):
        details.append(len(group))
        yield f"d{place}", group
    yield (
        "index",
        {
            **about,
            "pairs": len(by_pair),
            "prompts": len(prompts),
            "sides": sides,
            "models": models,
            "cluster": browser.cluster or "",
            "columns": columns,
            "words": words,
            "rows": rows,
            "details": details,
        },
    )


def script(name: str, data: Any) -> str:
    """The content of a piece's file."""
    return f"interpPairs({json.dumps(name)}, {plain_json(data)});\n"


def plain_json(data: Any) -> str:
    """JSON that may stand in an HTML element or a script, whatever its texts are."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    # Within JSON, these characters occur only in texts.
    for mark in "<>&\u2028\u2029":
        text = text.replace(mark, f"\\u{ord(mark):04x}")
    return text


def links(browser: Browser, page: str, about: Mapping[str, str]) -> dict[str, Any]:
    """What a page needs to lead from its numbers to the pairs behind them.

    The address of the browser is empty if it is on the same page. `about` has values of factors of
    the pairs that numbers are about, unless a table says otherwise.
    """
    prompts = browser.prompts
    factors = {
        name: values
        for name in filters_of(browser)
        if len(values := list(map(str, prompts[name].dropna().unique()))) <= MOST_VALUES
    }
    return {
        "page": page,
        "about": dict(about),
        "models": list(map(str, browser.answers["model"].unique())),
        "sides": list(map(str, prompts["side"].unique())),
        "factors": factors,
        "columns": [*factors] if browser.columns else [],
        "numbers": [
            {"name": label_of(number), "of": dict(number.of), "headline": number.headline}
            for number in _largest(browser.numbers)
        ],
    }


def filters_of(browser: Browser) -> list[str]:
    """The factors by whose values the list can be filtered."""
    names = []
    for name in factors_of(browser.prompts):
        values = browser.prompts[name].dropna().unique()
        if len(values) > 1 and sum(map(len, map(str, values))) <= MOST_LETTERS:
            names.append(name)
    return names


def label_of(number: Number) -> str:
    """The name of a column of numbers."""
    return f"{number.name}: {', '.join(number.of.values())}" if number.of else number.name


def _largest(numbers: Sequence[Number]) -> list[Number]:
    def size(number: Number) -> float:
        sizes = np.abs(np.array(list(number.values.values()), dtype=float))
        return float(np.nanmean(sizes)) if np.isfinite(sizes).any() else -1.0

    finite = [number for number in numbers if any(map(np.isfinite, number.values.values()))]
    if len(finite) <= MOST_NUMBERS:
        return finite
    kept = set(map(id, sorted(finite, key=size, reverse=True)[:MOST_NUMBERS]))
    return [number for number in finite if id(number) in kept]


def _by_pair(prompts: pd.DataFrame) -> dict[str, list[int]]:
    """The places of each pair's prompts in the table, in order."""
    places: dict[str, list[int]] = {}
    for place, pair in enumerate(prompts["pair_id"]):
        places.setdefault(str(pair), []).append(place)
    return places


def _outcomes(
    browser: Browser, model: str, sides: Sequence[str], by_pair: Mapping[str, Sequence[int]]
) -> Column:
    """A model's outcomes: three bits for each side, of which a letter holds two, lowest first."""
    answers = browser.answers[browser.answers["model"] == model].set_index("prompt_id")
    answers = answers.reindex(browser.prompts["prompt_id"])
    asked = answers["error"].notna().to_numpy()
    correct = answers["correct"].eq(True).fillna(False).to_numpy(dtype=bool)
    failed = (answers["error"].fillna("") != "").to_numpy()
    silent = answers["answer"].eq("").fillna(False).to_numpy(dtype=bool) & ~failed
    wrong = np.where(answers["correct"].notna().to_numpy() | failed, _WRONG, _UNJUDGED)
    codes = np.where(correct, _RIGHT, np.where(silent & (wrong == _WRONG), _SILENT, wrong)) * asked
    side = browser.prompts["side"].map({name: place for place, name in enumerate(sides)})
    width = -(-len(sides) // _SIDES_A_CODE)
    letter, within = (part.tolist() for part in np.divmod(side.to_numpy(), _SIDES_A_CODE))
    values: list[int] = []
    for places in by_pair.values():
        of_pair = [0] * width
        for place in places:
            of_pair[letter[place]] += int(codes[place]) * 8 ** within[place]
        values += of_pair
    return (
        {"name": "outcome", "kind": "outcome", "of": {"model": model}, "width": width},
        {"codes": _coded(values, 1)},
    )


def _factor(
    prompts: pd.DataFrame, name: str, sides: Sequence[str], by_pair: Mapping[str, Sequence[int]]
) -> Column:
    """A factor's values: one code for each pair or, if they differ within pairs, for each side."""
    texts = prompts[name].astype(object).where(prompts[name].notna(), None)
    values = sorted({str(text) for text in texts if text is not None})
    place_of = {value: place for place, value in enumerate(values, 1)}
    codes = [0 if text is None else place_of[str(text)] for text in texts]
    sided = bool((prompts.groupby("pair_id")[name].nunique() > 1).any())
    width = 1 if len(values) < len(CODES) else 2 if len(values) < len(CODES) ** 2 else 3
    order = {side: place for place, side in enumerate(sides)}
    own_side = [order[str(side)] for side in prompts["side"]]
    pair_codes: list[int] = []
    for places in by_pair.values():
        of_pair = [0] * len(sides)
        for place in places:
            of_pair[own_side[place]] = codes[place]
        pair_codes += of_pair if sided else [codes[places[0]]]
    few = len(values) <= MOST_VALUES
    return (
        {
            "name": name,
            "kind": "factor",
            "of": {},
            "width": width,
            "sided": sided,
            "values": values if few else None,
        },
        {"codes": _coded(pair_codes, width), "values": None if few else values},
    )


def _number(number: Number, by_pair: Mapping[str, Sequence[int]]) -> Column:
    """A number's values with three significant digits, which three letters hold exactly."""
    codes = [number_code(number.values.get(pair, float("nan"))) for pair in by_pair]
    return (
        {
            "name": label_of(number),
            "kind": "number",
            "of": dict(number.of),
            "group": number.name,
            "width": 3,
        },
        {"codes": _coded(codes, 3)},
    )


def number_code(value: float) -> int:
    """The code of a number: its sign, its exponent plus 16, and three digits; 0 if it has none.

    Sizes below 1e-14 are zero; those of 1e18 and above are left out, like NaN.
    """
    if not np.isfinite(value) or abs(value) >= 9.995e17:
        return 0
    digits, _, exponent = f"{abs(float(value)):.2e}".partition("e")
    if int(exponent) < -14:
        digits, exponent = "0", "0"
    size = (int(exponent) - 2 + 16) * 1000 + round(float(digits) * 100)
    return 1 + 2 * size + (value < 0)


def _coded(values: Iterable[int], width: int) -> str:
    """Integers as digits, `width` for each, the lowest first."""
    base = len(CODES)
    return "".join(CODES[value // base**place % base] for value in values for place in range(width))


def _rows(prompts: pd.DataFrame, by_pair: Mapping[str, Sequence[int]]) -> Iterator[list[str]]:
    """The id of each pair, and how its first prompt differs from the next."""
    texts = prompts["text"].astype(str).tolist()
    for pair, places in by_pair.items():
        first, *others = (texts[place] for place in places)
        yield [pair, _excerpt(first, others[0] if others else "")]


def _excerpt(text: str, other: str) -> str:
    """The words of a text from the first that another text lacks, on one line."""
    words, others = text.split(), other.split()
    start = 0
    if other:
        pairs = enumerate(zip_longest(words, others))
        start = next((place for place, (one, two) in pairs if one != two), 0)
        start = max(0, min(start, len(words)) - 3)
    excerpt = ("… " if start else "") + " ".join(words[start:])
    if len(excerpt) <= _WORDS:
        return excerpt
    # A long word alone is cut within.
    cut = excerpt[:_WORDS].rpartition(" ")[0]
    return f"{cut} …" if len(cut) > _WORDS // 2 else f"{excerpt[: _WORDS - 1].rstrip()}…"


def _packed(items: Iterable[Any], size: int) -> Iterator[list[Any]]:
    """Items in groups whose JSON has at most `size` bytes, or that have a single item."""
    held: list[Any] = []
    length = 0
    for item in items:
        added = len(plain_json(item).encode("utf-8", "surrogatepass"))
        if held and length + added > size:
            yield held
            held, length = [], 0
        held.append(item)
        length += added + 1
    if held:
        yield held


def _details(browser: Browser, by_pair: Mapping[str, Sequence[int]]) -> Iterator[dict[str, Any]]:
    """Everything about each pair, in order."""
    answers = browser.answers[[*_ANSWER]]
    pairs = list(by_pair)
    for chosen in (pairs[start : start + AT_ONCE] for start in range(0, len(pairs), AT_ONCE)):
        shown_prompts = browser.prompts.iloc[[place for pair in chosen for place in by_pair[pair]]]
        panels: dict[str, list[dict[str, Any]]] = {}
        for pair, panel in browser.panels(shown_prompts):
            panels.setdefault(str(pair), []).append(panel_data(panel))
        prompts: dict[str, list[dict[str, Any]]] = {}
        for row in shown_prompts.to_dict("records"):
            prompts.setdefault(str(row["pair_id"]), []).append(_prompt(row))
        given: dict[str, list[list[Any]]] = {}
        shown_answers = answers[answers["prompt_id"].isin(shown_prompts["prompt_id"])]
        for values in shown_answers.itertuples(index=False, name=None):
            given.setdefault(str(values[1]), []).append(_answer(*values))
        for pair in chosen:
            yield {
                "id": pair,
                "prompts": prompts[pair],
                "answers": [row for prompt in prompts[pair] for row in given.get(prompt["id"], [])],
                "panels": panels.get(pair, []),
            }


def _prompt(row: Mapping[Any, Any]) -> dict[str, Any]:
    """A prompt: its texts, its segments and its factors."""
    filled = {str(name): value for name, value in row.items() if not _is_missing(value)}
    # Places in the text are numbers; a factor's values are texts, whatever its name.
    places = {
        name: int(value)
        for name, value in filled.items()
        if name.endswith(("_start", "_end")) and not isinstance(value, str)
    }
    starts = [name.removesuffix("_start") for name in places if name.endswith("_start")]
    segments = [
        [name, places[f"{name}_start"], places[f"{name}_end"]]
        for name in starts
        if f"{name}_end" in places
    ]
    factors = {name: str(value) for name, value in filled.items() if name not in {*TAKEN, *places}}
    return {
        "id": str(filled["prompt_id"]),
        "side": str(filled["side"]),
        "text": str(filled["text"]),
        "gold": str(filled["gold"]),
        "messages": str(filled.get("messages", "")),
        "segments": sorted(segments, key=lambda segment: segment[1]),
        "factors": factors,
    }


_ANSWER = ("model", "prompt_id", "answer", "correct", "error")
"""A model's answer: the model, the prompt, the answer, whether it is right, and any error."""


def _answer(model: Any, prompt: Any, answer: Any, correct: Any, error: Any) -> list[Any]:
    return [
        str(model),
        str(prompt),
        "" if _is_missing(answer) else str(answer),
        None if _is_missing(correct) else bool(correct),
        "" if _is_missing(error) else str(error),
    ]


def _is_missing(value: object) -> bool:
    return value is None or value is pd.NA or (isinstance(value, float) and math.isnan(value))
