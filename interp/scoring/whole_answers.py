"""Answers as whole texts: the log-probability of each way of writing an option after its prompt.

A way is a sequence of tokens: a form of an option after one of the openings of an answer. The model
reads a prompt once and then, behind the prompt's keys and values, only the ways' own tokens but the
last, in one pass for all ways of a batch. Beginnings that several ways share are read once.

The probability of a way is that of a reply that begins with its tokens. Of two ways of one option,
only the shorter one counts if the longer one begins with it. A reply that begins with ways of two
options, such as "New York" and "New York City", counts for the option with the longer way, as in
generated texts (`interp.prompts.beginnings`), so no reply counts for two options, and the
probabilities of a prompt's options never exceed 1 in total.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor
from transformers.cache_utils import Cache

from interp.models.cache import empty, every_column, gathered, is_long, readable_in_parts
from interp.models.families.settings import drops_tokens
from interp.models.kinds import CAUSAL
from interp.models.model import Model
from interp.reading.readers import Embeddings, reader_of
from interp.reading.tokens import Batch

CHUNK_LOGITS = 2**25
"""Largest number of logits behind prompts in memory at once, for more than one row of tokens."""

Tokens = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Way:
    """One way of writing an option."""

    option: str
    tokens: Tokens
    text: str
    """The form that the tokens spell, without the opening before it."""
    longer: tuple[Tokens, ...] = ()
    """The shortest ways of other options that begin with these tokens, whose replies are theirs."""


def distinct_ways(written: Iterable[Way]) -> tuple[list[Way], tuple[Way, Way] | None]:
    """The ways that count, in the given order, and two ways of different options that are equal.

    A way that begins with a way of its own option is part of it and is left out.
    """
    ways: dict[Tokens, Way] = {}
    for way in written:
        earlier = ways.setdefault(way.tokens, way)
        if earlier.option != way.option:
            return [], (earlier, way)
    longer: dict[Tokens, list[Tokens]] = {}
    for tokens in sorted(ways, key=len):
        starts = (tokens[:length] for length in range(len(tokens) - 1, 0, -1))
        shorter = next((start for start in starts if start in longer), None)
        if shorter is not None and ways[shorter].option == ways[tokens].option:
            continue
        longer[tokens] = []
        if shorter is not None:
            longer[shorter].append(tokens)
    kept = [way for tokens, way in ways.items() if tokens in longer]
    return [replace(way, longer=tuple(longer[way.tokens])) for way in kept], None


@lru_cache(maxsize=4096)
def _steps(
    ways: tuple[Way, ...],
) -> tuple[tuple[Tokens, ...], Mapping[Tokens, tuple[int, int]]]:
    """The rows of tokens that are read behind a prompt, and where each token is predicted.

    This is the row and position for the last token of each beginning of two or more tokens.
    """
    paths = [path for way in ways for path in (way.tokens, *way.longer)]
    read = sorted({path[:-1] for path in paths if len(path) > 1}, reverse=True)
    rows: list[Tokens] = []
    for beginning in read:  # in this order, a row follows all rows that begin with it
        if not (rows and rows[-1][: len(beginning)] == beginning):
            rows.append(beginning)
    places = {
        path[:length]: (row, length - 2)
        for path in paths
        for length in range(2, len(path) + 1)
        for row, tokens in enumerate(rows)
        if tokens[: length - 1] == path[: length - 1]
    }
    return tuple(rows), places


def longest_row(ways: tuple[Way, ...]) -> int:
    """The largest number of tokens that are read behind a prompt; 0 if none are."""
    return max(map(len, _steps(ways)[0]), default=0)


def cache_for(model: Model, tokens: int, *, past: Cache | None = None) -> tuple[Cache, ...]:
    """The cache of a pass behind which other tokens follow; none if they need whole passes.

    `tokens` is the length of the longest prompt with the tokens that follow it; an empty cache is
    extended by default.
    """
    if past is None:
        in_parts = model.kind is CAUSAL and readable_in_parts(model, tokens)
    else:
        in_parts = not is_long(model, tokens)
    # Late layers of Gemma 4 keep no keys and values of tokens whose logits are not kept.
    if not in_parts or drops_tokens(model.text_config):
        return ()
    return (empty() if past is None else past,)


@dataclass(frozen=True, slots=True)
class Behind:
    """The logits behind the prompts of a batch, at the tokens of their answers."""

    ways: Float[Tensor, "prompt way"]
    """A logit for each way, beside the logits of the next token: that of its first token, plus the
    log-probabilities of its other tokens, in fp64. Minus infinity fills rows up.
    """
    steps: Sequence[Mapping[Tokens, bool]]
    """For each prompt, whether the last token of a beginning is the most probable one there."""
    tied: Sequence[Mapping[Tokens, int]]
    """For each prompt, the number of most probable tokens behind each of the ways' beginnings."""


class _Step(NamedTuple):
    """One token of an answer that is predicted behind its prompt."""

    row: int
    position: int
    path: Tokens
    prompt: int


def read_behind(
    model: Model,
    batch: Batch,
    ways: Sequence[tuple[Way, ...]],
    logits: Float[Tensor, "prompt vocabulary"],
    *,
    embeddings: Embeddings | None = None,
    past: Sequence[Cache] = (),
) -> Behind:
    """Read what follows the prompts of a batch, after the passes that gave their `logits`.

    Within `model.measuring()`. The batch may be a single prompt that the pass read in several rows;
    there are ways of each prompt, or of each row. `past` are the caches of the passes, of the next
    rows each; without any, the prompts are read again.
    """
    rows: list[tuple[int, Tokens]] = []
    steps: list[_Step] = []
    for prompt, group in enumerate(ways):
        read, places = _steps(group)
        steps += [_Step(len(rows) + r, p, path, prompt) for path, (r, p) in places.items()]
        rows += [(prompt, tokens) for tokens in read]
    steps.sort(key=lambda step: step.row)
    values, tops, ties = _log_probabilities(
        model, batch, rows, steps, embeddings=embeddings, past=past, prompts=len(ways)
    )
    index = {(step.prompt, step.path): place for place, step in enumerate(steps)}
    ours = [{path: index[n, path] for path in _steps(group)[1]} for n, group in enumerate(ways)]
    return Behind(
        _way_logits(ways, index, values, logits),
        [{path: tops[place] for path, place in by_path.items()} for by_path in ours],
        [{path[:-1]: ties[place] for path, place in by_path.items()} for by_path in ours],
    )


def _log_probabilities(
    model: Model,
    batch: Batch,
    rows: Sequence[tuple[int, Tokens]],
    steps: Sequence[_Step],
    *,
    embeddings: Embeddings | None,
    past: Sequence[Cache],
    prompts: int,
) -> tuple[Float[Tensor, " step"], list[bool], list[int]]:
    """For each step: its log-probability, whether it is the most probable, and how many are."""
    device = batch.token_ids.device
    reader = reader_of(model)
    flat, source = every_column(past) if past else ([], None)
    longest = max(len(tokens) for _, tokens in rows)
    vocabulary = int(model.text_config.vocab_size)
    # Each row copies its prompt's keys and values while their layer runs.
    most = max(1, min(4 * prompts, CHUNK_LOGITS // (longest * vocabulary)))
    values: list[Tensor] = []
    tops: list[Tensor] = []
    ties: list[Tensor] = []
    for first in range(0, len(rows), most):
        part = rows[first : first + most]
        of_prompt = torch.tensor([prompt for prompt, _ in part], device=device)
        filled = [[*tokens, *[0] * (longest - len(tokens))] for _, tokens in part]
        logits = reader.logits_behind(
            batch,
            of_prompt,
            torch.tensor(filled, device=device),
            embeddings=embeddings,
            past=None if source is None else gathered(flat, source[of_prompt.to(source.device)]),
        )
        part_steps = [step for step in steps if first <= step.row < first + most]
        at = [[step.row - first, step.position, step.path[-1]] for step in part_steps]
        row, position, token = torch.tensor(at, device=logits.device).T
        step_logits = logits[row, position].double()
        chosen = step_logits.gather(1, token[:, None]).squeeze(1)
        values.append(chosen - step_logits.logsumexp(1))
        with torch.no_grad():
            highest = step_logits.amax(1)
            tops.append(chosen == highest)
            ties.append((step_logits == highest[:, None]).sum(1))
    return torch.cat(values), torch.cat(tops).tolist(), torch.cat(ties).tolist()


def _way_logits(
    ways: Sequence[tuple[Way, ...]],
    index: Mapping[tuple[int, Tokens], int],
    steps: Float[Tensor, " step"],
    logits: Float[Tensor, "prompt vocabulary"],
) -> Float[Tensor, "prompt way"]:
    """The logits of all ways: a row for each prompt, whose last column is the first way's."""
    width = max(map(len, ways))
    places = [
        (n, width - 1 - nth, way) for n, group in enumerate(ways) for nth, way in enumerate(group)
    ]
    prompts, columns = (list(axis) for axis in zip(*((n, c) for n, c, _ in places), strict=True))
    firsts = [way.tokens[0] for _, _, way in places]
    values = logits[prompts, firsts].double()
    later = [
        (w, index[n, path])
        for w, (n, _, way) in enumerate(places)
        for path in _after(way.tokens, 1)
    ]
    values = values + _summed(later, steps, len(places))
    ends = [
        (w, [index[n, path] for path in _after(end, len(way.tokens))])
        for w, (n, _, way) in enumerate(places)
        for end in way.longer
    ]
    if ends:
        parts = [(number, step) for number, (_, path) in enumerate(ends) for step in path]
        shares = _summed(parts, steps, len(ends)).exp()
        others = torch.zeros_like(values).index_add(
            0, torch.tensor([w for w, _ in ends], device=values.device), shares
        )
        values = values + torch.log1p(-others.clamp(max=1 - torch.finfo(torch.float64).eps))
    filled = values.new_full((len(ways), width), -torch.inf)
    at = torch.tensor(prompts, device=values.device), torch.tensor(columns, device=values.device)
    return filled.index_put(at, values)


def _after(tokens: Tokens, count: int) -> list[Tokens]:
    """The beginnings of some tokens that are longer than `count`, the whole included."""
    return [tokens[:length] for length in range(max(count, 1) + 1, len(tokens) + 1)]


def _summed(
    parts: Sequence[tuple[int, int]], steps: Float[Tensor, " step"], count: int
) -> Float[Tensor, " sum"]:
    """Sums of steps; each part is the index of a sum and that of a step."""
    total = steps.new_zeros(count)
    if not parts:
        return total
    sums, chosen = torch.tensor(parts, device=steps.device).T
    return total.index_add(0, sums, steps[chosen])
