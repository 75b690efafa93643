"""What a model replies to a few prompts, for measurements that only compare options."""

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import torch

from interp.choices import AnswerReading
from interp.errors import UserError
from interp.models.kinds import CAUSAL
from interp.models.model import Model
from interp.prompts.prompt import Prompt
from interp.reading.thoughts import after_thought
from interp.reading.tokens import pad, tokenize
from interp.scoring.answer_tokens import AnswerTokenizer
from interp.scoring.answers import answer_tables, predict
from interp.tables import Row

FEW = 4
"""Number of first prompts that are asked in other ways."""


class Replies(NamedTuple):
    """How many replies begin with none of the options, and what helps if most do."""

    read: int
    """Number of prompts whose first predicted token was read."""
    outside: int
    """How many of these tokens begin none of the options."""
    token: str
    """The most frequent of them; empty if there is none."""
    templated: bool
    """Whether the model has a chat template, in use or not; only base models have none."""
    asked: int
    """Number of prompts that were asked in other ways, if most tokens begin none."""
    given: Mapping[str, int]
    """How many of their replies give an option, by the flag that asks for the way."""


@torch.no_grad()
def first_replies(
    model: Model, prompts: Sequence[Prompt], sample: int, *, thorough: bool = False
) -> Replies | None:
    """Whether a model replies with an option at all, and what helps if it does not.

    A preference between options is defined for any model, even for one that would reply with
    neither of them. `sample` prompts are read, spread evenly over all (`Spec.replies_read`). Other
    ways of asking are tried for base models most of whose replies are no option; if `thorough`, for
    any model with such a reply. None if no prompt can be read, or the weights are not here.
    """
    if not (sample and model.has_weights):
        return None
    places = sorted({round(n * (len(prompts) - 1) / (sample - 1)) for n in range(sample)})
    if not (read := _answers(model, [prompts[place] for place in places])):
        return None
    outside = [str(row["predicted_token"]) for row in read if row["answer"] == ""]
    (token, _), *_ = Counter(outside).most_common(1) or [("", 0)]
    base = model.kind is CAUSAL and not model.tokenizer.chat_template
    replies = Replies(len(read), len(outside), token, not base, 0, {})
    wanted = bool(outside) if thorough else base and 2 * len(outside) > len(read)
    if not wanted or model.kind is not CAUSAL or model.chat.thinks:
        return replies
    asked = min(FEW, len(prompts))
    return replies._replace(asked=asked, given=_other_ways(model, prompts, asked))


def _other_ways(model: Model, prompts: Sequence[Prompt], asked: int) -> Mapping[str, int]:
    from interp.prompts.around import with_messages

    given = {}
    for flag, around, reading in _WAYS:
        with suppress(UserError):  # the prompts have it already, or too few clusters
            changed = with_messages(prompts, **around) if around else prompts
            rows = _answers(model, [changed[place] for place in range(asked)], reading)
            if len(rows) == asked:
                given[flag] = len([row for row in rows if row["answer"] != ""])
    return given


_WAYS: Sequence[tuple[str, Mapping[str, Any], AnswerReading]] = (
    ("--answer-prefix Answer:", {"answer_prefix": "Answer:"}, "first"),
    ("--shots 4", {"shots": 4}, "first"),
    ("--answers whole", {}, "whole"),
)


def _answers(
    model: Model, prompts: Sequence[Prompt], reading: AnswerReading = "first"
) -> list[Row]:
    """The rows in the answers table of the prompts that can be read."""
    answers, rows = AnswerTokenizer(model, reading), []
    for prompt in prompts:
        with suppress(UserError, RuntimeError):  # reported when the prompt is measured
            thought = after_thought(model, prompt) if model.chat.thinks else prompt
            batch = pad(model, tokenize(model, [thought]))
            with model.measuring():
                (tables,) = answer_tables(model, batch, predict(model, batch, answers))
            rows += tables["answers"]
    return [row for row in rows if not row["error"] and row["answer"] is not None]
