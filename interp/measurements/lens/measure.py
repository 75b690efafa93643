"""The measurement for the spec `Lens`: what lenses read at chosen tokens of each prompt.

One forward pass of a batch yields the answers and the streams at the chosen tokens. A score is the
product of a word's row with the stream, divided by the scale of the final norm at that token: in
units of logits, and at the last layer the model's own logits. Rows of the Jacobian lens are fitted
for the words of all prompts at once, and kept on disk (`interp.lenses.store`).

A word is read by its first token behind a space, as in the middle of a sentence; answer options are
read by the first token with which the answer begins, as everywhere. Words that begin with the same
token cannot be told apart, so all of them are left out and counted.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain

import torch
from jaxtyping import Float
from torch import Tensor

from interp.errors import UserError, shortened
from interp.lenses.corpus import read_corpus, sentences
from interp.lenses.final import FinalNorm, check_lens
from interp.lenses.rows import EMBEDDING, check_layers, stream_at
from interp.lenses.store import LensOfWords
from interp.measurements.activations.measure import Place, places_of, vectors_at
from interp.measurements.lens.tables import mean_rank
from interp.measurements.specs import Activations, Lens
from interp.measuring.core import Measurement, PromptRows, token_rows
from interp.models.model import Model
from interp.models.sites import layer_count
from interp.prompts.own.facts import Subjects, find_facts
from interp.prompts.prompt import Prompt
from interp.reading.budget import GPU_GRADIENT_TOKENS, token_budget
from interp.reading.tokens import Batch, TokenizedPrompt
from interp.scoring.answer_tokens import AnswerTokenizer
from interp.scoring.answers import answer_error, answer_tables, read_prompts
from interp.tables import Row

GROUP = "entity_group"
"""The factor of a system's facts that groups facts whose answers are alike."""


@dataclass(frozen=True, slots=True)
class Words:
    """The words among which a prompt is read."""

    names: tuple[str, ...]
    tokens: tuple[int, ...]
    """The token by which each word is read; all different."""
    left_out: int = 0
    """Number of words that were left out, as they share their token with another."""


@dataclass(frozen=True, slots=True)
class Question:
    """What is read in a prompt: among which words, and which of them is right."""

    words: Words
    right: str | None = None
    """The right word; None if there is none, or it was left out."""
    fact: str | None = None
    """Id of the fact that the prompt is about, if facts are asked."""


class Questions:
    """The words of each prompt, for one model."""

    def __init__(self, model: Model, spec: Lens) -> None:
        self._model, self._spec = model, spec
        self._answer_tokens = AnswerTokenizer(model, spec.answers)

    def __call__(self, tokenized: TokenizedPrompt) -> Question:
        """The question about a prompt."""
        if self._spec.words is not None:
            return Question(self._own)
        asked, about = tokenized.prompt, None
        if self._facts is None:
            options = self._answer_tokens(tokenized).of
            words = _distinct({name: tokens[0] for name, tokens in options.items()})
        else:
            asked = self._facts[0].about(tokenized.prompt)
            words, about = self._facts[1][asked.factors.get(GROUP, "")], asked.id
        right = asked.answer.gold
        return Question(words, right if right in words.names else None, about)

    @cached_property
    def _own(self) -> Words:
        assert self._spec.words is not None
        return _distinct({word: first_token(self._model, word) for word in self._spec.words})

    @cached_property
    def _facts(self) -> tuple[Subjects, Mapping[str, Words]] | None:
        """Facts by their subjects, and the words that answer those of each group."""
        if self._spec.facts is None:
            return None
        facts = find_facts(self._spec.facts)
        answers: dict[str, dict[str, int]] = {}
        for fact in facts:
            of_group = answers.setdefault(fact.factors.get(GROUP, ""), {})
            of_group.setdefault(fact.answer.gold, first_token(self._model, fact.answer.gold))
        return Subjects(facts), {group: _distinct(tokens) for group, tokens in answers.items()}


def _distinct(tokens: Mapping[str, int]) -> Words:
    """The words that share their token with no other."""
    times = Counter(tokens.values())
    kept = {name: token for name, token in tokens.items() if times[token] == 1}
    return Words(tuple(kept), tuple(kept.values()), len(tokens) - len(kept))


def first_token(model: Model, word: str) -> int:
    """The first token of a word in the middle of a sentence."""
    text, begin = f"It is {word}", len("It is ")
    encoded = model.tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
    for token, (_, end) in zip(encoded["input_ids"], encoded["offset_mapping"], strict=True):
        if end > begin:
            return int(token)
    raise UserError(f"the tokenizer of {model.name} has no token for {shortened(word, 60)!r}")


Scores = Float[Tensor, "layer word place"]


def lens(model: Model, spec: Lens, *, batch_tokens: int | None = None) -> Measurement:
    """Measure answers, and what lenses read at chosen tokens.

    Raises:
        UserError: the model has no lens, or lacks a layer; facts or corpus cannot be read.
    """
    check_lens(model)
    layers = [EMBEDDING, *(range(layer_count(model)) if spec.layers is None else spec.layers)]
    check_layers(model, layers)
    reader = _Reader(model, spec, layers, batch_tokens)
    budget = token_budget(model, batch_tokens, on_gpu=GPU_GRADIENT_TOKENS)
    begin = reader.fit if "jacobian" in spec.methods else None
    errors = partial(answer_error, model)
    return Measurement(model, spec, budget, reader.measure, errors, begin=begin)


class _Reader:
    def __init__(
        self, model: Model, spec: Lens, layers: Sequence[int], batch_tokens: int | None
    ) -> None:
        self._model, self._spec, self._layers = model, spec, layers
        self._norm = FinalNorm(model)
        self._last = layer_count(model) - 1
        self._questions = Questions(model, spec)
        self._answer_tokens = AnswerTokenizer(model, spec.answers)
        texts = sentences() if spec.corpus is None else read_corpus(spec.corpus)
        self._lenses = {
            kind: LensOfWords(model, kind, layers, texts=texts, batch_tokens=batch_tokens)
            for kind in spec.methods
        }

    def fit(self, prompts: Sequence[TokenizedPrompt]) -> None:
        """Fit or read the rows of the words of all prompts that have words."""
        tokens: list[int] = []
        for prompt in prompts:
            with suppress(UserError):  # the prompt's row says so
                tokens += self._questions(prompt).words.tokens
        for lens in self._lenses.values():
            lens.fit(tokens)

    def measure(self, batch: Batch) -> list[PromptRows]:
        model = self._model
        where = Activations(roles=self._spec.roles, tokens=self._spec.tokens)
        places = [list(places_of(prompt, where)) for prompt in batch.prompts]
        locations = {("resid", n): stream_at(model, n) for n in {*self._layers, self._last}}
        answers = [self._answer_tokens(prompt) for prompt in batch.prompts]
        questions = [self._questions(prompt) for prompt in batch.prompts]
        with torch.inference_mode(), model.measuring():
            with vectors_at(locations, batch, places) as vectors:
                prompt_pass = read_prompts(model, batch, answers)
            predictions = prompt_pass.predictions()
        streams = {layer: stream[:, 0].clone() for (_, layer), stream in vectors.items()}
        tokens = list(dict.fromkeys(chain.from_iterable(q.words.tokens for q in questions)))
        scores = self._scores(batch, places, streams, tokens)
        columns = {token: column for column, token in enumerate(tokens)}
        rows: list[PromptRows] = []
        start = 0
        for index, tables in enumerate(answer_tables(model, batch, predictions)):
            (answer,) = tables["answers"]
            span = slice(start, start + len(places[index]))
            start = span.stop
            words = [columns[token] for token in questions[index].words.tokens]
            chosen = {key: values[:, words, span] for key, values in scores.items()}
            read = self._rows(batch.prompts[index], places[index], questions[index], chosen)
            rows.append({"answers": [answer], "lens_readings": [] if answer["error"] else read})
        return rows

    def _scores(
        self,
        batch: Batch,
        places: Sequence[Sequence[Place]],
        streams: Mapping[int, Float[Tensor, "place width"]],
        tokens: Sequence[int],
    ) -> dict[tuple[str, bool], Scores]:
        """The scores by method, of the streams and of the embeddings alone."""
        stacked = torch.stack([streams[layer] for layer in self._layers])
        alone = streams[EMBEDDING].expand_as(stacked)
        scale = self._norm.scale(streams[self._last])
        at = [(i, place.positions[0]) for i, of_prompt in enumerate(places) for place in of_prompt]
        by_method: dict[tuple[str, bool], Scores] = {}
        for method, lens in self._lenses.items():
            rows = lens.rows(tokens, batch, at).to(stacked.dtype)
            for states, embedding in ((stacked, False), (alone, True)):
                by = self._norm.scale(states) if method == "logit" else scale
                terms = "lwpd,lpd->lwp" if rows.dim() == 4 else "lwd,lpd->lwp"
                scores = torch.einsum(terms, rows, states)
                by_method[method, embedding] = scores / (by[:, None] if by.dim() == 2 else by)
        return by_method

    def _rows(
        self,
        prompt: TokenizedPrompt,
        places: Sequence[Place],
        question: Question,
        scores: Mapping[tuple[str, bool], Scores],
    ) -> list[Row]:
        tokens = token_rows(self._model, prompt)
        words = question.words.names
        right = None if question.right is None else words.index(question.right)
        asked: Row = {"words": list(words), "left_out": question.words.left_out}
        asked |= {"fact": question.fact, "right": question.right}
        rows: list[Row] = []
        for number, place in enumerate(places):
            seen = _seen(prompt.prompt, place.group, question.right)
            shared = {**tokens[place.positions[0]], **asked, "group": place.group, "seen": seen}
            for method in self._spec.methods:
                streams, alone = (scores[method, which][:, :, number] for which in (False, True))
                for layer, read, control in zip(self._layers, streams, alone, strict=True):
                    reading: Row = {"scores": read.tolist(), "from_embedding": control.tolist()}
                    reading |= {"layer": layer, "method": method, **_ranked(read, right)}
                    rows.append({**shared, **reading})
        return rows


def _seen(prompt: Prompt, group: str, right: str | None) -> bool | None:
    """Whether the right word stands in the prompt up to the end of the group of tokens."""
    if right is None:
        return None
    _, end = {**prompt.segments, **prompt.roles}.get(group, (0, len(prompt.text)))
    word = rf"(?<!\w){re.escape(right)}(?!\w)"
    return re.search(word, prompt.text[:end], re.IGNORECASE) is not None


def _ranked(scores: Float[Tensor, " word"], right: int | None) -> Row:
    """The rank of the right word, and its log-odds against the others."""
    if right is None or len(scores) < 2:
        return {"rank": None, "log_odds": None}
    others = torch.cat([scores[:right], scores[right + 1 :]])
    return {
        "rank": mean_rank(scores.double().numpy(), right),
        "log_odds": float(scores[right] - others.logsumexp(0)),
    }
