"""Cautions about what models answer: outside the options, always the same, read whole."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from types import MappingProxyType

import numpy as np
import pandas as pd

from interp.analysis.cautions.caution import (
    CONSTANT,
    OUTSIDE_OPTIONS,
    SHOWN_CHARACTERS,
    WHOLE,
    Caution,
    percent,
    quoted,
    reply_text,
)
from interp.analysis.constant import ALIKE, NAMED, Constant, constant_answers, constant_phrasings
from interp.analysis.reading_tables import FEW_SIDES
from interp.analysis.readings import SAME
from interp.console import counted
from interp.errors import one_line
from interp.measuring.spec import Replies

OUTSIDE = 0.05
"""Share of replies outside the options from which a caution says so: they all count as wrong, so an
accuracy is then too low by up to 0.05, half the smallest difference of interest."""

MOST_OUTSIDE = 0.5
"""Share of replies outside the options from which an accuracy describes the form of most replies
rather than what the model concludes."""

FORCED = "forced_choice"
"""Column of answers that are forced choices."""

LONGEST_BEGINNING = 200
"""Number of characters of a generated text in which its first words are looked for."""


def answer_cautions(
    answers: pd.DataFrame,
    prompts: pd.DataFrame,
    options: pd.DataFrame | None = None,
    replies: Mapping[str, Replies] = MappingProxyType({}),
) -> Iterator[Caution]:
    """Cautions about replies outside the options, and about answers that hardly vary.

    Prompts with an error, with free text or with a single option are not counted. Answers are empty
    if the reply is outside the options; predicted_token or completion are read if known. A column
    `FORCED` says that the answers are the preferred ones of some options, whatever the replies to a
    few prompts are (`ModelFacts.replies`).
    """
    chosen = _with_options(answers, prompts, options)
    for model, rows in chosen.groupby("model", sort=False):
        silent = rows["answer"] == ""
        if silent.mean() >= OUTSIDE:
            yield _outside(str(model), rows, silent, remedy(replies.get(str(model))))
        if silent.mean() >= MOST_OUTSIDE:
            continue
        if constant := constant_answers(rows):
            forced = FORCED in answers
            yield _constant(str(model), constant, chosen=forced, unknown=model not in replies)
        elif phrasings := constant_phrasings(heard := rows[~silent]):
            yield _in_phrasings(str(model), phrasings, heard["phrasing"].nunique())


def _with_options(
    answers: pd.DataFrame, prompts: pd.DataFrame, options: pd.DataFrame | None
) -> pd.DataFrame:
    """One row per model and prompt that could be answered by choosing an option."""
    kept = ["prompt_id", "pair_id", "side", "gold", "weight"]
    kept += ["phrasing"] * ("phrasing" in prompts)
    rows = answers[answers["answer"].notna() & (answers["error"] == "")]
    rows = rows.merge(prompts[kept], on="prompt_id")
    if options is None or options.empty:
        unknown = pd.Series([()] * len(rows), rows.index, dtype=object)
        return rows.assign(options=rows["pair_id"].map(_golds(prompts)), forced=unknown)
    keys = ["model", "prompt_id"]
    share = options["relative_probability"].fillna(options["probability"])
    highest = share.groupby([options[key] for key in keys], sort=False).transform("max")
    best = options[share >= highest * (1 - SAME)].groupby(keys, sort=False)["option"]
    rows = rows.join(best.agg(tuple).rename("forced"), on=keys)
    names = options.groupby(keys, sort=False)["option"].agg(tuple)
    rows = rows.join(names.rename("options"), on=keys)
    several = rows["options"].map(lambda offered: isinstance(offered, tuple) and len(offered) > 1)
    return rows[several.astype(bool)]  # of no rows, pandas knows no type


def _golds(prompts: pd.DataFrame) -> dict[str, tuple[str, ...]]:
    """Each pair's correct answers, as options are not stored; empty if few prompts share them."""
    by_pair = prompts.groupby("pair_id", sort=False)["gold"]
    golds = {str(pair): tuple(sorted(set(right.dropna()))) for pair, right in by_pair}
    prompts_with = Counter(golds[pair] for pair in prompts["pair_id"])
    return {pair: right if prompts_with[right] >= ALIKE else () for pair, right in golds.items()}


def remedy(replies: Replies | None) -> str:
    """What helps a model to reply with an option, and how far it does."""
    *_, templated, asked, given = replies or (True, 0, {})
    base = "" if templated else " It has no chat template (a base model): it continues the text."
    tried = ", ".join(f"{count} of {asked} with {flag}" for flag, count in given.items())
    if tried:
        return f"{base} Of its first {asked} replies, an option is given by {tried}."
    return (
        f"{base} --answer-prefix Answer:, --shots 4 or --answers whole may help; doctor tries them."
    )


def _outside(model: str, rows: pd.DataFrame, silent: pd.Series, mend: str) -> Caution:
    """The share of replies outside the options, and the accuracy of the most probable option."""
    share = float(silent.mean())
    first_tokens = "predicted_token" in rows
    none = "none of the options" if first_tokens else "no valid answer"  # texts may have no options
    text = (
        f"{percent(share)} of its replies ({silent.sum():,} of {len(rows):,}) give {none} and "
        "count as wrong"
    )
    numbers: dict[str, object] = {"share": share, "replies": len(rows)}
    # A decoder can predict a number that is no token of its tokenizer.
    if first_tokens and len(begun := rows.loc[silent, "predicted_token"].mode()):
        first = str(begun[0])
        text += f"; most often they begin with “{reply_text(first)}”"
        numbers["token"] = first
    if "completion" in rows:
        texts = rows.loc[silent, "completion"].fillna("").astype(str)
        begun = texts.str[:LONGEST_BEGINNING]
        words = str(begun.map(lambda start: " ".join(start.split()[:2]) or start).mode()[0])
        begin = f"they begin with “{reply_text(words)}”"
        text += f"; most often {begin if words else 'they are empty'}"
        numbers["words"] = words
        cut = numbers["cut_off"] = float(rows.loc[silent, "finished"].eq("length").mean())
        if cut >= MOST_OUTSIDE:
            text += f"; {percent(cut)} of them were cut off at their length"
            mend = (
                " Longer texts (generate --max-new-tokens, or as their tool calls it) may answer."
            )
        else:
            mend = " --shots 4 shows a model how to answer."
    text += "."
    if rows["forced"].map(len).all():
        # Equally probable options share the point, as in the table of readings.
        right = [
            (gold in top) / len(top) for gold, top in zip(rows["gold"], rows["forced"], strict=True)
        ]
        accuracy = float(np.average(right, weights=rows["weight"]))
        text += f" Choosing the most probable option instead: accuracy {accuracy:.2f}"
        numbers["forced_accuracy"] = accuracy
        tied = rows["forced"].map(len) > 1
        if tied.any():
            text += f"; {percent(float(tied.mean()))} of these choices are ties"
            numbers["tied"] = float(tied.mean())
        constant = constant_answers(rows.assign(answer=rows["forced"].str[0])[~tied])
        if constant is not None:
            others = "these choices" if not tied.any() else "the others"
            text += f"; {percent(constant.same / constant.answers)} of {others} are "
            text += f"{_usual(constant)}, which alone scores {constant.alone['accuracy']:.2f}"
            numbers["forced"] = _json(constant)
        text += "."
    text += mend
    return Caution(OUTSIDE_OPTIONS, model, text, voids=share >= MOST_OUTSIDE, numbers=numbers)


def _constant(model: str, constant: Constant, *, chosen: bool, unknown: bool) -> Caution:
    """That answers hardly vary; they may be `chosen` among options, and replies `unknown`."""
    answers = "choices among the options" if chosen else "answers"
    share = constant.same / constant.answers
    count = f"{constant.same:,} of {constant.answers:,}"
    if constant.within:
        text = f"Within a phrasing, {percent(share)} of its {answers} ({count}) are the same"
    else:
        text = f"{percent(share)} of its {answers} ({count}) are {_usual(constant)}"
    text += "; they hardly depend on the prompt."
    if constant.by_phrasing and not constant.within and constant.same < constant.answers:
        text += f" By phrasing: {_range(constant.by_phrasing)}."
    alone, of_model = _scores(constant.alone), _scores(constant.model)
    text += f" Always answering so scores {alone}"
    text += ", as the model does." if alone == of_model else f"; the model scores {of_model}."
    text += " --shots 4 shows it what else to say."
    if chosen and unknown:
        text += " Whether it replies with an option at all is not known here; evaluate shows it."
    return Caution(CONSTANT, model, text, voids=True, numbers=_json(constant))


def _in_phrasings(model: str, answers: Mapping[str, str], phrasings: int) -> Caution:
    named = [f"{quoted(name)}: {quoted(answer)}" for name, answer in answers.items()]
    shown = ", ".join(named[:4]) + ", ..." * (len(named) > 4)
    text = (
        f"its answers hardly depend on the prompt in {len(answers)} of "
        f"{counted(phrasings, 'phrasing')} ({shown})."
    )
    return Caution(CONSTANT, model, text, numbers={"phrasings": dict(answers), "of": phrasings})


def _json(constant: Constant) -> dict[str, object]:
    return {**asdict(constant), "usual": list(constant.usual)}


def _usual(answers: Constant) -> str:
    names = " or ".join(map(quoted, answers.usual[:NAMED])) + " ..." * (len(answers.usual) > NAMED)
    if answers.place is None:
        return names
    place = f"option {answers.place + 1}"
    return f"{names} ({place})" if names else place


def _range(shares: Mapping[str, float]) -> str:
    """The lowest and the highest share, with the phrasing that has the lowest."""
    low = min(shares, key=lambda name: shares[name])
    if math.isclose(shares[low], max(shares.values())):
        return f"{percent(shares[low])} in all {len(shares)}"
    return f"{percent(shares[low])} ({quoted(low)}) to {percent(max(shares.values()))}"


def _scores(scores: Mapping[str, float]) -> str:
    """Accuracies as text, such as "0.50 (paired 0.00, rulebreaker 1.00, non_rulebreaker 0.00)"."""
    names = [name for name in scores if name not in ("accuracy", "paired_accuracy")]
    shown = {"paired_accuracy": scores.get("paired_accuracy")} if len(names) > 1 else {}
    shown |= {name: scores[name] for name in names if 1 < len(names) <= FEW_SIDES}
    each = ", ".join(
        f"{one_line(name.removesuffix('_accuracy'), SHOWN_CHARACTERS)} {value:.2f}"
        for name, value in shown.items()
    )
    return f"{scores['accuracy']:.2f}" + (f" ({each})" if each else "")


def read_whole(whole: pd.DataFrame) -> Iterator[Caution]:
    """That options were read whole although first tokens were asked for, as two began alike.

    `whole` has a row for each model and prompt (or pair): model, whole.
    """
    for model, answers in whole.groupby("model", sort=False)["whole"]:
        share = float(answers.eq(True).mean())
        if share:
            some = "every prompt" if share == 1 else f"{share:.0%} of the prompts"
            yield Caution(
                WHOLE,
                str(model),
                f"options of {some} begin with the same token, so the whole texts were read: "
                "their numbers are log-probabilities of texts rather than of first tokens",
                numbers={"share": share},
            )
