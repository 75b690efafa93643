"""The measurement for the spec `Activations`: vectors at chosen sites and tokens of each prompt.

One forward pass of a batch yields the answers, while hooks keep the vectors of the chosen tokens.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from interp.choices import LAST, POOLED, SITES
from interp.errors import UserError
from interp.measurements.specs import Activations
from interp.measuring.core import Measurement, PromptRows, token_rows
from interp.models.kinds import CLASSIFIER
from interp.models.model import Model
from interp.models.sites import Location, check_sites, layers_with, locate, watched
from interp.patching.checks import check_sums
from interp.reading.budget import token_budget
from interp.reading.tokens import Batch, TokenizedPrompt, tokens_of
from interp.scoring.answer_tokens import AnswerTokenizer
from interp.scoring.answers import answer_error, answer_tables, read_prompts
from interp.tables import Row

SiteKey = tuple[str, int]
"""Site and layer."""

Vectors = Float[Tensor, "place head size"]


@dataclass(frozen=True, slots=True)
class Place:
    """The place in a prompt at which a vector is read."""

    group: str
    """The requested segment or role."""
    positions: tuple[int, ...]
    """The position of one token, or the positions of several tokens to be averaged."""


def activations(model: Model, spec: Activations, *, batch_tokens: int | None = None) -> Measurement:
    """Measure answers, and the vectors at selected sites and tokens, in one forward pass.

    Raises:
        UserError: the model lacks a site or layer, or models of its kind lack a requested token.
    """
    answer, other = (POOLED, LAST) if model.kind is CLASSIFIER else (LAST, POOLED)
    if spec.roles == (other,):
        raise UserError(
            f"the prompts of {model.name}, a {model.kind.name}, have no token {other!r}; its "
            f"answer is read at {answer}"
        )
    check_sites(model, spec.sites, layers=spec.layers)
    locations: Mapping[SiteKey, Location] = {
        (site, layer): locate(model, site, layer)
        for site in spec.sites
        for layer in (layers_with(model, site) if spec.layers is None else spec.layers)
    }
    answer_tokens = AnswerTokenizer(model, spec.answers)
    # A single prompt suffices to verify the sites.
    unchecked = model.architecture.causal

    def measure_batch(batch: Batch) -> list[PromptRows]:
        nonlocal unchecked
        places = [list(places_of(prompt, spec)) for prompt in batch.prompts]
        with torch.inference_mode(), model.measuring():
            if unchecked:
                check_sums(model, batch.prompts[0], spec.sites)
                unchecked = False
            with vectors_at(locations, batch, places) as vectors:
                answers = [answer_tokens(prompt) for prompt in batch.prompts]
                prompt_pass = read_prompts(model, batch, answers)
            predictions = prompt_pass.predictions()
        starts = np.cumsum([0, *map(len, places)])
        rows: list[PromptRows] = []
        for index, tables in enumerate(answer_tables(model, batch, predictions)):
            (answer,) = tables["answers"]
            span = slice(starts[index], starts[index + 1])
            arrays = {key: vectors[key][span].numpy() for key in locations}
            kept = place_rows(model, batch.prompts[index], places[index], arrays)
            vector_rows = [] if answer["error"] else kept
            rows.append({"answers": [answer], "activation_vectors": vector_rows})
        return rows

    budget = token_budget(model, batch_tokens)
    return Measurement(model, spec, budget, measure_batch, partial(answer_error, model))


def places_of(prompt: TokenizedPrompt, spec: Activations) -> Iterator[Place]:
    """The places at which a prompt's vectors are read, in the order in which they are stored.

    A segment or role that the prompt lacks yields no place.
    """
    for name in spec.roles or (POOLED if prompt.pooled else LAST,):
        positions = tuple(tokens_of(prompt, name))
        if spec.tokens == "all":
            yield from (Place(name, (position,)) for position in positions)
        elif positions:
            yield Place(name, positions if spec.tokens == "mean" else positions[-1:])


@contextmanager
def vectors_at(
    locations: Mapping[SiteKey, Location], batch: Batch, places: Sequence[Sequence[Place]]
) -> Iterator[dict[SiteKey, Vectors]]:
    """Collect the vectors of all places, by site and layer, from a forward pass within the block.

    Vectors are in fp32 on the CPU. The axis `head` has size 1 if a site has no heads.
    """
    vectors: dict[SiteKey, Vectors] = {}
    lengths = [len(place.positions) for place in chain.from_iterable(places)]
    starts = [batch.unpadded(row).start or 0 for row in range(len(places))]
    at = [
        (row, starts[row] + position)
        for row, of_prompt in enumerate(places)
        for place in of_prompt
        for position in place.positions
    ]
    rows, columns = torch.tensor(at, dtype=torch.long).reshape(-1, 2).T

    def keep(key: SiteKey, tensor: Tensor) -> None:
        view = locations[key].view(tensor)
        kept = view[rows.to(view.device), columns.to(view.device)].detach().float().cpu()
        if len(kept) != len(lengths):  # some places have several tokens
            kept = torch.stack([tokens.mean(0) for tokens in torch.split(kept, lengths)])
        vectors[key] = kept

    with ExitStack() as stack:
        for key, location in locations.items():
            stack.enter_context(watched([location], partial(keep, key)))
        yield vectors
    for site, layer in locations:
        if (site, layer) not in vectors:
            raise UserError(
                f"the forward pass does not reach the site {site} of layer {layer}; omit this site"
            )


def place_rows(
    model: Model,
    prompt: TokenizedPrompt,
    places: Sequence[Place],
    vectors: Mapping[SiteKey, NDArray[np.float32]],
) -> list[Row]:
    """The rows of the table activation_vectors: one for each place, site, layer and head.

    `vectors` are (place, head, size), by site and layer; the head axis has size 1 if a site has no
    heads.
    """
    tokens = token_rows(model, prompt)
    rows: list[Row] = []
    for index, place in enumerate(places):
        shared: Row = {"model": model.name, "prompt_id": prompt.prompt.id}
        if len(place.positions) == 1:
            shared = tokens[place.positions[0]]
        shared = {**shared, "group": place.group, "tokens": len(place.positions)}
        for (site, layer), by_place in vectors.items():
            for head, vector in enumerate(by_place[index]):
                at = {"site": site, "layer": layer, "vector": vector}
                rows.append({**shared, **at, "head": None if SITES[site].heads is None else head})
    return rows
