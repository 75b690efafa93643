"""The measurement for the spec `Steer`: each prompt of a pair, under changes of its stream."""

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import pairwise

import torch

from interp.choices import LAST, POOLED
from interp.errors import UserError
from interp.lenses.corpus import sentences
from interp.lenses.final import check_lens
from interp.lenses.interventions import Change, Directions, Intervention, Outcomes, intervene
from interp.lenses.store import LensOfWords
from interp.measurements.lens.tables import BAND
from interp.measurements.patching.measure import CPU_CELL_TOKENS, PairMeasurement
from interp.measurements.specs import Steer
from interp.measurements.steering import directions
from interp.measuring.core import PromptRows
from interp.models.model import Model
from interp.models.sites import check_sites, layer_count
from interp.patching.cells import PatchingPair
from interp.patching.checks import check_passes
from interp.patching.exact import native_grid
from interp.patching.pairs import contrast_of
from interp.patching.passes import answers_behind
from interp.patching.tables import flips
from interp.prompts.prompt import Prompt
from interp.reading.budget import TokenBudget, token_budget
from interp.reading.tokens import Batch, TokenizedPrompt, pad
from interp.scoring.answer_tokens import AnswerTokenizer
from interp.scoring.answers import NOT_FINITE
from interp.tables import Row

DIFFERENCE = "difference"


def band_of(layers: int) -> range:
    """The layers of the default band (`BAND`) in a model with so many layers."""
    first, last = (round(share * layers) for share in BAND)
    return range(min(first, layers - 1), max(last, first + 1))


def steering(model: Model, spec: Steer, *, batch_tokens: int | None = None) -> PairMeasurement:
    """Measure how changes of the residual stream along directions change answers.

    Raises:
        UserError: the model lacks a layer, or has no lens for the directions of words.
    """
    check_sites(model, ("resid_post",), layers=spec.layers)
    if spec.directions != (DIFFERENCE,):
        check_lens(model)

    def error_rows(prompt: Prompt, error: str) -> PromptRows:
        key: Row = {"model": model.name, "prompt_id": prompt.id, "pair_id": prompt.pair_id}
        return {"steered": [{**key, "error": error}]}

    budget = token_budget(model, batch_tokens, on_cpu=CPU_CELL_TOKENS)
    change = _Steering(model, spec, budget)
    return PairMeasurement(model, spec, budget, change, error_rows, begin=change.fit)


_Cell = tuple[Row, Intervention]
"""The columns of a row, and its intervention."""


class _Steering:
    def __init__(self, model: Model, spec: Steer, budget: TokenBudget) -> None:
        self._model, self._spec = model, spec
        self._engine = native_grid(model, budget=budget)
        self._read = AnswerTokenizer(model, answers_behind(model, spec.answers))
        every = range(layer_count(model))
        chosen = band_of(len(every)) if spec.band else every
        self._layers = tuple(chosen if spec.layers is None else spec.layers)
        self._lenses: dict[str, LensOfWords] = {
            kind: LensOfWords(model, kind, self._layers, texts=sentences())
            for kind in spec.directions
            if kind != DIFFERENCE
        }
        self._unchecked = model.architecture.causal

    def fit(self, prompts: Sequence[TokenizedPrompt]) -> None:
        """Fit or read the rows of the words of all whole pairs that have words."""
        tokens: list[int] = []
        for pair in pairwise(prompts if self._lenses else ()):
            first, second = (tokenized.prompt for tokenized in pair)
            if first.pair_id == second.pair_id:
                with suppress(UserError):  # the pair's row says so
                    words = [self._words(*changed) for changed in self._changed(*pair)]
                    tokens += [token for side in words for t in side.tokens.values() for token in t]
        for lens in self._lenses.values():
            lens.fit(tokens)

    def __call__(self, batch: Batch) -> list[PromptRows]:
        """The rows of each prompt of the pair; none for a side that is not changed."""
        clean, corrupt = batch.prompts
        rows = {one[0].prompt.id: self._measured(*one) for one in self._changed(clean, corrupt)}
        return [rows.get(prompt.prompt.id, {}) for prompt in batch.prompts]

    def _changed(
        self, clean: TokenizedPrompt, corrupt: TokenizedPrompt
    ) -> Iterator[tuple[TokenizedPrompt, TokenizedPrompt, tuple[str, str]]]:
        """The prompts of a pair that are changed, with the other one, and what is contrasted."""
        options = contrast_of(clean.prompt, corrupt.prompt)
        for prompt, other in ((clean, corrupt), (corrupt, clean)):
            if self._spec.side in (None, prompt.prompt.side):
                gold = prompt.prompt.answer.gold
                yield prompt, other, options if options[0] == gold else (options[1], options[0])

    def _measured(
        self, prompt: TokenizedPrompt, other: TokenizedPrompt, contrast: tuple[str, str]
    ) -> PromptRows:
        model = self._model
        answers = self._read(prompt).contrast(*contrast)
        pair = PatchingPair.aligned(prompt, prompt, answers, policy="last", whole=True)
        with model.measuring():
            if self._unchecked:  # one prompt is enough
                check_passes(model, pair)
                self._unchecked = False
        words = self._words(prompt, other, contrast) if self._lenses else None
        cells = list(self._cells(prompt, other, words))
        outcomes = intervene(self._engine, model, pair, [change for _, change in cells])
        key: Row = {"model": model.name, "prompt_id": prompt.prompt.id}
        finite = math.isfinite(outcomes.base)
        options = {"gold_option": contrast[0], "other_option": contrast[1], "whole": answers.whole}
        outcome = {"metric": outcomes.base, "error": ""} if finite else {"error": NOT_FINITE}
        summary: Row = {**key, "pair_id": prompt.prompt.pair_id, **options, **outcome}
        if words is not None:
            summary |= {"own_word": words.own, "other_word": words.other}
            summary["third_word"] = words.third
        rows = [{**key, **row} for row in _rows(cells, outcomes)] if finite else []
        return {"steered": [summary], "steering_effects": rows}

    def _words(
        self, prompt: TokenizedPrompt, other: TokenizedPrompt, contrast: tuple[str, str]
    ) -> directions.Words:
        if self._spec.words == "options":
            return directions.option_words(prompt, contrast, self._read)
        return directions.mentioned_words(self._model, prompt, other, self._spec.words)

    def _cells(
        self, prompt: TokenizedPrompt, other: TokenizedPrompt, words: directions.Words | None
    ) -> Iterator[_Cell]:
        """The interventions, those with the own and a third word last."""
        spec = self._spec
        for role in spec.roles or (POOLED if prompt.pooled else LAST,):
            positions = directions.joined_tokens(prompt, role=role, last=spec.tokens == "last")
            if not positions:
                continue
            shared: Row = {"role": role, "tokens": len(positions)}
            for kind in spec.directions:
                for source, along in self._directions(kind, (prompt, other), role, words):
                    row = {**shared, "direction": kind, "source": source}
                    drawn = range(spec.draws if source == "direction" else 0)
                    seeds = tuple(_seed(prompt.prompt, draw) for draw in drawn)
                    yield from self._of(row, along, tuple(positions), seeds)

    def _directions(
        self,
        kind: str,
        pair: tuple[TokenizedPrompt, TokenizedPrompt],
        role: str,
        words: directions.Words | None,
    ) -> Iterator[tuple[str, Mapping[Change, Sequence[Directions]]]]:
        """The directions at each layer by change, for each source."""
        spec = self._spec
        tokens = partial(directions.joined_tokens, role=role, last=spec.tokens == "last")
        if kind == DIFFERENCE or words is None:
            differences = directions.side_differences(self._model, *pair, tokens, self._layers)
            if not all(map(torch.any, differences)):
                return  # tokens before the first that differs are the same on both sides
            by_layer = [Directions.of(difference[None]) for difference in differences]
            yield "direction", dict.fromkeys(spec.changes, by_layer)
            return
        batch, position = pad(self._model, pair[:1]), tokens(pair[0])[-1]
        rows = directions.rows_of_words(self._lenses[kind], batch, position, words)
        seconds = {"direction": words.other} | ({"third": words.third} if words.third else {})
        for source, other in seconds.items():
            along = {
                change: directions.word_directions(rows, words.own, other, change)
                for change in spec.changes
            }
            yield source, along

    def _of(
        self,
        row: Row,
        along: Mapping[Change, Sequence[Directions]],
        positions: tuple[int, ...],
        seeds: tuple[int, ...],
    ) -> Iterator[_Cell]:
        for change, in_order in along.items():
            by_layer = dict(zip(self._layers, in_order, strict=True))
            places = (
                {None: by_layer}
                if self._spec.band
                else {layer: {layer: at_layer} for layer, at_layer in by_layer.items()}
            )
            for dose in self._spec.doses:
                for layer, of_layers in places.items():
                    columns = {**row, "change": change, "dose": dose, "layer": layer}
                    yield columns, Intervention(change, of_layers, positions, dose, seeds)


def _seed(prompt: Prompt, draw: int) -> int:
    digest = hashlib.sha256(f"placebo {draw} {prompt.id}".encode()).digest()
    return int.from_bytes(digest[:7])


def _rows(cells: Sequence[_Cell], outcomes: Outcomes) -> Iterator[Row]:
    for (row, _), metric, placebos in zip(cells, outcomes.changed, outcomes.placebos, strict=True):
        yield _row(row, metric, outcomes.base)
        for draw, placebo in enumerate(placebos):
            yield _row({**row, "source": "placebo", "draw": draw}, placebo, outcomes.base)


def _row(columns: Row, metric: float, base: float) -> Row:
    finite = math.isfinite(metric)
    measured = {"effect": base - metric, "turned": flips(metric, base)} if finite else {}
    return {**columns, **measured}
