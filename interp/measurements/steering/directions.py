"""The directions along which a prompt's stream is changed: those of words, or between sides."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain

import torch
from jaxtyping import Float
from torch import Tensor

from interp.errors import UserError
from interp.lenses.interventions import Change, Directions
from interp.lenses.store import LensOfWords
from interp.measurements.activations.measure import Place, vectors_at
from interp.models.model import Model
from interp.models.sites import locate
from interp.prompts.mixing import donors_of, mixed
from interp.prompts.prompt import Prompt
from interp.reading.readers import reader_of
from interp.reading.tokens import Batch, TokenizedPrompt, pad, tokenize, tokens_of
from interp.scoring.answer_tokens import AnswerTokenizer


@dataclass(frozen=True, slots=True)
class Words:
    """The words of a prompt, and the tokens that stand for them."""

    own: str
    other: str
    third: str | None
    """A word that is neither; None if there is none."""
    tokens: Mapping[str, tuple[int, ...]]
    """The first tokens of each word."""


def option_words(prompt: TokenizedPrompt, options: tuple[str, str], read: AnswerTokenizer) -> Words:
    """The correct answer, the other option, and a third one if the prompt has more than two."""
    correct, other = options
    answers = read(prompt)
    third = next((name for name in answers.of if name not in options), None)
    tokens = {
        name: tuple(dict.fromkeys(answers.spelled(column)[0] for column in answers.of[name]))
        for name in (correct, other, third)
        if name is not None
    }
    return _distinct(prompt.prompt, Words(correct, other, third, tokens))


def mentioned_words(
    model: Model, prompt: TokenizedPrompt, other: TokenizedPrompt, name: str
) -> Words:
    """The texts of a segment or role in a prompt, in the other prompt of its pair, and in a donor.

    A word's tokens are its first one in running text and its first one as an answer. `name` is a
    segment or role, or what follows the last segment's name in a role.
    """
    mention, counterpart = (_mention(tokenized.prompt, name) for tokenized in (prompt, other))
    if mention == counterpart:
        raise UserError(
            f"both prompts of pair {prompt.prompt.pair_id!r} have {mention!r} as {name}, so there "
            "are no two words; expected a segment or role in which they differ"
        )
    read = AnswerTokenizer(model)

    def tokens(word: str) -> tuple[int, ...]:
        inside = model.tokenizer.encode(f" {word}", add_special_tokens=False)[:1]
        answers = (way[0] for way in read.written(prompt.chat, word))
        return tuple(dict.fromkeys([*inside, *answers]))

    by_word = {word: tokens(word) for word in (mention, counterpart)}
    for word in _donated(prompt.prompt, name):
        if word not in by_word:
            with suppress(UserError):
                third = {**by_word, word: tokens(word)}
                return _distinct(prompt.prompt, Words(mention, counterpart, word, third))
    return _distinct(prompt.prompt, Words(mention, counterpart, None, by_word))


def _distinct(prompt: Prompt, words: Words) -> Words:
    """The words with only those tokens with which no other word begins, such as a mere space."""
    times = Counter(token for of_word in words.tokens.values() for token in of_word)
    tokens = {
        word: tuple(token for token in of_word if times[token] == 1)
        for word, of_word in words.tokens.items()
    }
    for word, kept in tokens.items():
        if not kept:
            others = ", ".join(repr(other) for other in tokens if other != word)
            raise UserError(
                f"the word {word!r} of prompt {prompt.id} begins with the same token as one of "
                f"{others}, so a lens cannot tell them apart; omit the prompt"
            )
    return replace(words, tokens=tokens)


def _mention(prompt: Prompt, name: str) -> str:
    spans = {**prompt.roles, **prompt.segments}
    for label, (start, end) in spans.items():
        if label == name or label.endswith(f"_{name}"):
            return prompt.text[start:end]
    raise UserError(
        f"prompt {prompt.id} has no segment or role {name!r}; it has {', '.join(spans)}"
    )


def _donated(prompt: Prompt, name: str) -> list[str]:
    """The word in each donor from another instance."""
    words = []
    for donor in prompt.donors:
        if donor.kind == "instance":
            with suppress(UserError):
                words.append(_mention(mixed(prompt, donor), name))
    return words


def rows_of_words(
    lens: LensOfWords, batch: Batch, position: int, words: Words
) -> dict[str, Float[Tensor, "layer width"]]:
    """For each word, its row at every layer: the mean over the word's tokens.

    A prompt's own Jacobian is taken at `position` of the batch's only prompt.
    """
    needed = list(dict.fromkeys(chain.from_iterable(words.tokens.values())))
    stack = lens.rows(needed, batch, [(0, position)])
    rows = dict(zip(needed, (stack[:, :, 0] if stack.dim() == 4 else stack).unbind(1), strict=True))
    return {
        word: torch.stack([rows[token] for token in tokens]).mean(0)
        for word, tokens in words.tokens.items()
    }


def word_directions(
    rows: Mapping[str, Float[Tensor, "layer width"]], word: str, other: str, change: Change
) -> list[Directions]:
    """The directions of a change at each layer: both words or, to add, from one to the other."""
    directions = []
    for pair in zip(rows[word], rows[other], strict=True):
        units = torch.stack([row / row.norm() for row in pair]).double()
        directions.append(Directions.of(units[1:] - units[:1] if change == "add" else units))
    return directions


def side_differences(
    model: Model,
    prompt: TokenizedPrompt,
    other: TokenizedPrompt,
    positions_of: Callable[[TokenizedPrompt], Sequence[int]],
    layers: Sequence[int],
) -> list[Float[Tensor, " width"]]:
    """At each layer, the mean stream of the other side minus that of this side, over donors.

    Both sides are about entities of other instances, in the sentences of this pair, so the
    difference owes nothing to this pair's entities. `positions_of` gives the tokens of a prompt
    whose streams are averaged.
    """
    means = []
    for side in (prompt.prompt, other.prompt):
        donated = tokenize(model, [mixed(side, donor) for donor in donors_of(side, "instance")])
        places = [Place("", tuple(positions_of(one))) for one in donated]
        kept = [(one, place) for one, place in zip(donated, places, strict=True) if place.positions]
        if not kept:
            raise UserError(
                f"prompt {side.id} has no donor with the tokens to be changed, so the difference "
                "between sides is unknown; omit difference"
            )
        means.append(_mean_streams(model, kept, layers))
    return [theirs - ours for ours, theirs in zip(*means, strict=True)]


@torch.no_grad()
def _mean_streams(
    model: Model, kept: Sequence[tuple[TokenizedPrompt, Place]], layers: Sequence[int]
) -> list[Float[Tensor, " width"]]:
    locations = {("resid_post", layer): locate(model, "resid_post", layer) for layer in layers}
    totals = [torch.zeros(())] * len(layers)
    for prompt, place in kept:
        batch = pad(model, [prompt])
        with vectors_at(locations, batch, [[place]]) as vectors:
            reader_of(model).answer_logits(batch)
        rows = [vectors["resid_post", layer].flatten() for layer in layers]
        totals = [total + row / len(kept) for total, row in zip(totals, rows, strict=True)]
    return totals


def joined_tokens(prompt: TokenizedPrompt, *, role: str, last: bool) -> list[int]:
    """The tokens of all segments and roles that are joined by +, as far as the prompt has them."""
    tokens: list[int] = []
    for name in role.split("+"):
        of_name = tokens_of(prompt, name)
        tokens += of_name[-1:] if last else of_name
    return sorted(set(tokens))
