"""Keys and values of earlier tokens. Only this module depends on how transformers builds caches."""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional
from transformers import DynamicCache
from transformers.cache_utils import Cache, DynamicLayer, DynamicSlidingWindowLayer

from interp.models.families.settings import (
    READING_PADDING,
    keeps_indexer_keys,
    short_length,
    skips_layers,
)
from interp.models.model import Model

KeyValues = list[tuple[Tensor, Tensor]]
"""Keys and values of each layer, (row, key-value head, token, size)."""


def empty() -> Any:
    """An empty cache, to which a forward pass adds keys and values."""
    return DynamicCache()


def key_values(cache: Any) -> KeyValues:
    """The cached keys and values of the layers that ran."""
    return [(layer.keys, layer.values) for layer in cache.layers if layer.is_initialized]


def of_layer(cache: Any, layer: int) -> tuple[Tensor, Tensor]:
    """A layer's cached keys and values, (row, key-value head, token, size)."""
    return cache.layers[layer].keys, cache.layers[layer].values


def behind(past: KeyValues, *, rows: int, tokens: int) -> Any:
    """A cache of a prompt's first tokens, shared by all rows without copies."""
    if not tokens:
        return empty()
    layers: list[Any] = []
    for keys, values in past:
        layer = DynamicLayer()
        layer.lazy_initialization(keys, values)
        layer.keys = keys[:, :, :tokens].expand(rows, -1, -1, -1)
        layer.values = values[:, :, :tokens].expand(rows, -1, -1, -1)
        layers.append(layer)
    return Cache(layers=layers)


def gathered(flat: KeyValues, source: Int[Tensor, "row column"], *, kept: bool = False) -> Cache:
    """A cache in which each column of each row holds the keys and values of a chosen token.

    `flat` has those of each layer, (token, key-value head, size), for the tokens of all prompts,
    one after another, and `source` each token's index in it. If `kept`, the cache also keeps those
    of the tokens that the pass reads.
    """
    return Cache(layers=[_GatheredLayer(keys, values, source, kept) for keys, values in flat])


def every_column(caches: Sequence[Any]) -> tuple[KeyValues, Int[Tensor, "row column"]]:
    """Caches that passes have extended, as `gathered` takes them: their old and new columns.

    Rows follow one another from cache to cache, aligned on the right; columns that fill them up
    refer to the first token. Caches of `gathered` must have been made with `kept`, from the same
    keys and values.
    """
    stretches = [flattened(cache) for cache in caches]
    firsts = [cache.layers[0] for cache in caches]
    if isinstance(firsts[0], _GatheredLayer):
        stretches.insert(0, [layer.states for layer in caches[0].layers])
    stored = sum(len(stretch[0][0]) for stretch in stretches[: len(stretches) - len(caches)])
    sources = []
    for cache, first in zip(caches, firsts, strict=True):
        rows, _, read, _ = key_values(cache)[0][0].shape
        new = torch.arange(stored, stored + rows * read, device=stretches[0][0][0].device)
        new, stored = new.view(rows, read), stored + rows * read
        old = [first.source] if isinstance(first, _GatheredLayer) else []
        sources.append(torch.cat([*old, new], 1))
    width = max(source.shape[1] for source in sources)
    filled = [functional.pad(source, (width - source.shape[1], 0)) for source in sources]
    return joined(stretches), torch.cat(filled)


def flattened(cache: Any) -> KeyValues:
    """A cache's keys and values as `gathered` takes them: (row x token, key-value head, size)."""
    return [
        (keys.transpose(1, 2).flatten(0, 1), values.transpose(1, 2).flatten(0, 1))
        for keys, values in key_values(cache)
    ]


def joined(stretches: Sequence[KeyValues]) -> KeyValues:
    """The flattened keys and values of several passes, concatenated."""
    layers = zip(*stretches, strict=True)
    return [
        (torch.cat([keys for keys, _ in layer]), torch.cat([values for _, values in layer]))
        for layer in layers
    ]


def holds_key_values_alone(model: Model) -> bool:
    """Whether a later pass needs only the keys and values of an earlier pass."""
    if model.hf.config.model_type in READING_PADDING:
        return False
    if model.kind.reads_ahead or model.is_recurrent:
        return False
    config = model.text_config
    several_parts = not hasattr(config, "num_hidden_layers")  # such as BLT
    if several_parts or skips_layers(config):
        return False
    layers = DynamicCache(config=config).layers
    plain = all(type(layer) in (DynamicLayer, DynamicSlidingWindowLayer) for layer in layers)
    return plain and len(layers) == config.num_hidden_layers


def readable_in_parts(model: Model, tokens: int) -> bool:
    """Whether reading prompts of up to this length in two steps leaves the logits unchanged.

    This requires that the second step needs only the keys and values of the first, and that the
    rotary frequencies are those of short prompts.
    """
    takes_parts = model.takes_positions and model.cache_argument in model.forward_arguments
    return takes_parts and holds_key_values_alone(model) and not is_long(model, tokens)


def runs_in_parts(model: Model) -> bool:
    """Whether a pass may begin at any layer and token, behind keys and values of earlier tokens."""
    if keeps_indexer_keys(model.text_config) or model.reads_tokens_again:
        return False
    return holds_key_values_alone(model) and model.anatomy.chained


class _GatheredLayer(DynamicLayer):
    """Keys and values of prompts, copied to the rows of a pass only while their layer runs."""

    def __init__(
        self,
        keys: Float[Tensor, "token head size"],
        values: Float[Tensor, "token head value_size"],
        source: Int[Tensor, "row column"],
        kept: bool,
    ) -> None:
        # A call by `super`, which mypy's list of packages that are not annotated does not reach.
        super().__init__()  # type: ignore[no-untyped-call]
        self.states, self.source, self._kept = (keys, values), source, kept

    def get_seq_length(self) -> int:
        """The number of cached columns, which precede the tokens that the pass reads."""
        return self.source.shape[1]

    def update(
        self, key_states: Tensor, value_states: Tensor, *unused: Any, **also_unused: Any
    ) -> tuple[Tensor, Tensor]:
        """Keys and values of all columns, (row, head, column, size)."""
        if self._kept:
            self.keys, self.values, self.is_initialized = key_states, value_states, True
        return self._with(key_states, self.states[0]), self._with(value_states, self.states[1])

    def _with(
        self, new: Float[Tensor, "row head read size"], states: Float[Tensor, "token head size"]
    ) -> Float[Tensor, "row head column size"]:
        """The chosen tokens and then the new ones, copied once, laid out as in other caches."""
        read, heads = new.shape[2], states.shape[1]
        source = functional.pad(self.source.to(states.device), (0, read))
        places = source[:, None] * heads + torch.arange(heads, device=states.device)[:, None]
        chosen = states.flatten(0, 1).index_select(0, places.flatten())
        columns = chosen.view(*places.shape, -1)
        columns[:, :, -read:] = new
        return columns


def is_long(model: Model, tokens: int) -> bool:
    """Whether the rotary frequencies for this many tokens differ from those for short prompts."""
    length = short_length(model.text_config)
    return length is not None and tokens > length
