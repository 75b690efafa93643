"""Hidden states that vLLM wrote, converted to the vectors that `interp activations` measures.

vLLM writes one safetensors file per request: `token_ids` (token,) and `hidden_states` (token,
extracted layer, size), for the layer ids in `eagle_aux_hidden_state_layer_ids`
(https://docs.vllm.ai/en/latest/features/speculative_decoding/extract_hidden_states/). Layer id l is
the residual stream after l layers, before any final norm; 0 is the embedding. Layers are stored as
the forward pass reaches them, so they are in increasing order. The files do not name their prompts:
a file belongs to each prompt whose tokens are a prefix of its tokens.
"""

from collections.abc import Iterator, Sequence
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float32
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from interp.console import counted
from interp.errors import UserError, described, one_line, shortened
from interp.files import inside, is_plain, names_in, reading
from interp.measurements.activations.measure import place_rows, places_of
from interp.measurements.specs import Activations
from interp.models.checkpoint import as_user_error
from interp.models.find import find_named
from interp.models.loading import Loading
from interp.models.model import Model
from interp.models.sites import layer_count
from interp.prompts.prompt import Prompt
from interp.reading.tokens import TokenizedPrompt, tokenize
from interp.tables import Row

SUFFIX = ".safetensors"

OPTIONS = frozenset({"roles", "tokens"})
"""The options of `activations` that apply to files; their sites and layers are given."""

TYPES = frozenset({torch.float16, torch.bfloat16, torch.float32, torch.float64})
"""Types of hidden states; vLLM writes those of the model's computation."""

_IDS = (torch.int32, torch.int64)

ROUNDING = 0.02
"""Largest norm of the difference between two files of the same tokens, relative to the states.

bfloat16, with relative errors of 2^-9, rounds differently in batches of other sizes.
"""


def unloaded(name: str, **options: Any) -> Model:
    """A model without weights in memory, which can tokenize prompts.

    Args:
        name: as for `load_model`.
        options: those of `load_model`, such as `chat_template=False`.

    Raises:
        UserError: there is no such model, or its configuration or tokenizer cannot be read.
    """
    loading = Loading(**options)
    located = find_named(name, loading)
    with torch.device("meta"), as_user_error("config.json", name):
        hf = located.kind.auto_for(located.config).from_config(located.config, dtype=torch.float32)
    return Model(located.name, hf, located.tokenizer, located.source, loading.chat())


def token_ids(model: Model, prompts: Sequence[Prompt]) -> dict[str, list[int]]:
    """The tokens of each prompt, by prompt id, to be passed to vLLM as `prompt_token_ids`.

    Raises:
        UserError: a prompt cannot be tokenized, or is too long.
    """
    return {prompt.prompt.id: list(prompt.token_ids) for prompt in tokenize(model, prompts)}


def read_hidden_states(
    folder: Path | str,
    model: Model,
    prompts: Sequence[Prompt],
    *,
    layers: Sequence[int],
    **options: Any,
) -> pd.DataFrame:
    """Read the vectors of prompts from vLLM's files.

    Args:
        folder: vLLM's `shared_storage_path`, read after vLLM has ended.
        model: the model that vLLM ran, from `unloaded` or `load_model`.
        prompts: the prompts, every one of which must have a file.
        layers: the ids in `eagle_aux_hidden_state_layer_ids`, increasing.
        options: `roles` and `tokens` of the measurement `activations`: which tokens are read.

    Returns:
        The columns of the table `activation_vectors`, in fp32: layer id l > 0 is the site
        `resid_post` of layer l - 1, and layer id 0 is `resid_pre` of layer 0.

    Raises:
        UserError: a file is damaged, has unexpected shapes, or holds numbers that are not finite; a
        prompt has no file, or two that differ; the model has no such layer ids; or an option does
        not apply.
    """
    if not_taken := sorted(options.keys() - OPTIONS):
        raise UserError(
            f"got the option {shortened(not_taken[0])}, which does not apply to vLLM's files; "
            f"expected {' or '.join(sorted(OPTIONS))}"
        )
    spec = Activations(**options)
    spec.arranged(prompts)
    keys = _sites(model, layers)
    size = model.text_config.hidden_size
    waiting: dict[tuple[int, ...], list[TokenizedPrompt]] = {}
    for prompt in tokenize(model, prompts):
        waiting.setdefault(prompt.token_ids, []).append(prompt)
    lengths = sorted(set(map(len, waiting)), reverse=True)
    wanted = set(waiting)
    taken: dict[tuple[int, ...], Path] = {}
    rows: list[Row] = []
    for file in _files(Path(folder)):
        ids, states = _read(file, layers=len(keys), size=size)
        begun = (ids[:length] for length in lengths)
        tokens = next((begin for begin in begun if begin in wanted), None)
        if tokens is None:
            continue
        if tokens in taken:
            earlier = _read(taken[tokens], layers=len(keys), size=size)[1][: len(tokens)]
            apart = (earlier - states[: len(tokens)]).norm(dim=(0, 2))
            if (apart > ROUNDING * earlier.norm(dim=(0, 2))).any():
                raise UserError(
                    f"{taken[tokens]} and {file} hold other hidden states for the same tokens; "
                    "expected the files of one run of vLLM: empty its folder before it runs again"
                )
        taken.setdefault(tokens, file)
        for prompt in waiting.pop(tokens, []):
            places = list(places_of(prompt, spec))
            means = [states[list(place.positions)].mean(0).numpy() for place in places]
            # (place, 1, size) for each layer: the stream has no heads.
            sites = {key: np.array([mean[n][None] for mean in means]) for n, key in enumerate(keys)}
            rows += place_rows(model, prompt, places, sites)
    if waiting:
        lacking = [prompt.prompt.id for same in waiting.values() for prompt in same]
        raise UserError(
            f"{counted(len(lacking), 'prompt')} of {len(prompts):,} have no file in {folder}, "
            f"such as {lacking[0]}; pass the tokens from `token_ids` to vLLM as prompt_token_ids, "
            "and use the same model and options here"
        )
    return pd.DataFrame(rows)


def _sites(model: Model, layers: Sequence[int]) -> list[tuple[str, int]]:
    most = layer_count(model)
    whole = isinstance(layers, Sequence) and all(isinstance(layer, Integral) for layer in layers)
    if not layers or not whole or sorted(set(layers) & set(range(most + 1))) != list(layers):
        raise UserError(
            f"got the layer ids {described(layers)}; expected increasing numbers from 0 "
            f"(the embedding) to {most} (after the last layer of {model.name})"
        )
    return [("resid_post", layer - 1) if layer else ("resid_pre", 0) for layer in layers]


def _files(folder: Path) -> Iterator[Path]:
    with reading(folder):
        names = sorted(name for name in names_in(folder) if name.endswith(SUFFIX))
    if not names:
        raise UserError(f"{folder} holds no {SUFFIX} files; expected vLLM's shared_storage_path")
    for name in names:
        file = inside(folder, name)
        if not is_plain(file):
            raise UserError(f"{file} is not a plain file; remove it")
        yield file


def _read(
    file: Path, *, layers: int, size: int
) -> tuple[tuple[int, ...], Float32[Tensor, "token layer size"]]:
    try:
        tensors = load_file(file)
    except (SafetensorError, OSError, ValueError) as error:
        raise UserError(f"{file} cannot be read: {one_line(str(error), 160)}") from error
    ids, states = tensors.get("token_ids"), tensors.get("hidden_states")
    if ids is None or states is None or ids.ndim != 1 or ids.dtype not in _IDS:
        raise UserError(
            f"{file} holds {', '.join(sorted(tensors)) or 'nothing'}; expected token_ids (token,) "
            "and hidden_states (token, layer, size), as vLLM writes them"
        )
    if states.shape != (len(ids), layers, size):
        raise UserError(
            f"{file} holds hidden states of the shape {tuple(states.shape)}; expected "
            f"{(len(ids), layers, size)}, given its tokens, the layer ids and the model"
        )
    if states.dtype not in TYPES:
        raise UserError(
            f"{file} holds hidden states of the type {str(states.dtype).removeprefix('torch.')}; "
            "expected floating-point numbers of 16, 32 or 64 bits, as vLLM writes them"
        )
    states = states.float()
    if not states.isfinite().all():
        raise UserError(f"{file} holds numbers that are not finite in fp32; run vLLM again")
    return tuple(ids.tolist()), states
