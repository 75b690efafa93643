"""What a model replies to a few prompts, for measurements that only compare options."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from interp.choices import AnswerReading
from interp.errors import UserError
from interp.models.kinds import CAUSAL
from interp.models.model import Model
from interp.prompts.around import with_messages
from interp.prompts.prompt import Prompt
from interp.reading.thoughts import after_thought
from interp.reading.tokens import pad, tokenize
from interp.scoring.answer_tokens import AnswerTokenizer
from interp.scoring.answers import answer_tables, predict
from interp.tables import Row

SAMPLE = 16
"""Number of prompts that are read, spread evenly over all."""


class Replies(NamedTuple):
    """How many replies begin with none of the options."""

    read: int
    """Number of prompts whose first predicted token was read."""
    outside: int
    """How many of these tokens begin none of the options."""
    token: str
    """The most frequent of them; empty if there is none."""


FEW = 4
"""Number of prompts on which other ways of asking are tried."""


class Ways(NamedTuple):
    """How many replies give an option if a model is asked in other ways."""

    templated: bool
    """Whether it has a chat template; base models have none."""
    read: int
    """Number of prompts that were tried."""
    options: dict[str, int]
    """How many of the replies give an option, by the flag that asks for the way."""


@torch.no_grad()
def other_ways(model: Model, prompts: Sequence[Prompt]) -> Ways | None:
    """What helps a model to reply with an option, tried on the first prompts.

    Returns:
        None if most of these replies give an option anyway, or cannot be read.
    """
    if not model.has_weights or model.kind is not CAUSAL or model.chat.thinks:
        return None
    places = range(min(FEW, len(prompts)))
    plain = _given(model, [prompts[place] for place in places], "first")
    if plain is None or 2 * plain >= len(places):
        return None

    def around(**asked: Any) -> int | None:
        try:
            changed = with_messages(prompts, **asked)
            return _given(model, [changed[place] for place in places], "first")
        except UserError:  # the prompts have it already, or too few clusters
            return None

    tried = {
        "--answer-prefix Answer:": around(answer_prefix="Answer:"),
        "--shots 4": around(shots=4),
        "--answers whole": _given(model, [prompts[place] for place in places], "whole"),
    }
    found = {flag: given for flag, given in tried.items() if given is not None}
    return Ways(model.chat_frame.templated, len(places), found)


def _given(model: Model, prompts: Sequence[Prompt], reading: AnswerReading) -> int | None:
    """How many replies give an option; None if one cannot be read."""
    answers = AnswerTokenizer(model, reading)
    rows = [_answer(model, prompt, answers) for prompt in prompts]
    if any(row is None or row["error"] or row["answer"] is None for row in rows):
        return None
    return len([row for row in rows if row and row["answer"] != ""])


@torch.no_grad()
def first_replies(model: Model, prompts: Sequence[Prompt]) -> Replies | None:
    """Whether a model replies with an option at all, from at most `SAMPLE` of the prompts.

    A preference between options is defined for any model, even for one that would reply with
    neither of them.

    Returns:
        The counts; None if no prompt can be read, or the weights are not on this machine.
    """
    if not model.has_weights:
        return None
    answers = AnswerTokenizer(model, "first")
    places = sorted({round(n * (len(prompts) - 1) / (SAMPLE - 1)) for n in range(SAMPLE)})
    rows = [_answer(model, prompts[place], answers) for place in places]
    read = [row for row in rows if row and not row["error"] and row["answer"] is not None]
    outside = [str(row["predicted_token"]) for row in read if row["answer"] == ""]
    (token, _), *_ = Counter(outside).most_common(1) or [("", 0)]
    return Replies(len(read), len(outside), token) if read else None


def _answer(model: Model, prompt: Prompt, answers: AnswerTokenizer) -> Row | None:
    """A prompt's row in the answers table; None if it cannot be read."""
    try:
        own = after_thought(model, prompt) if model.chat.thinks else prompt
        batch = pad(model, tokenize(model, [own]))
        with model.measuring():
            (tables,) = answer_tables(model, batch, predict(model, batch, answers))
    except (UserError, RuntimeError):  # reported when the prompt is measured
        return None
    return tables["answers"][0]
