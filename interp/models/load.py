"""Load models by hub name, local folder, GGUF file or organism name."""

import os
import warnings
from contextlib import suppress
from copy import deepcopy
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import torch
from huggingface_hub import hf_hub_download
from huggingface_hub.errors import EntryNotFoundError
from transformers import PreTrainedModel

from interp.console import echo
from interp.errors import UserError, described, one_line
from interp.models.checkpoint import (
    Stored,
    as_user_error,
    indexed_files,
    read_configuration,
    stored_tensors,
    weight_names,
    weights_in,
)
from interp.models.find import FoundModel, find_named
from interp.models.loading import Loading
from interp.models.model import Model
from interp.models.quantized import (
    can_dequantize,
    check_blocks,
    dequantized,
    keep_unpacked,
    quantization_config,
    quantization_of,
    quantized_weights,
    run_eagerly,
    without_marks,
)
from interp.models.tensor_parallel import spreading
from interp.models.weights import (
    check_complete,
    check_counts,
    check_device,
    check_sizes,
    one_token,
    quiet_report,
)
from interp.options import with_options_of


@with_options_of(Loading)
def load_model(name: str, **options: Any) -> Model:
    """Load a causal language model, sequence classifier or text-to-text model, and its tokenizer.

    A LoRA adapter is merged into its base.

    Args:
        name: hub name, local folder of a model or an adapter, GGUF file, or "organism/NAME" for a
            packaged organism. A folder's model is named by the last part of its path;
            "NAME=PATH" names it otherwise.
        **options: the fields of `Loading`.

    Raises:
        UserError: the model cannot be found, is damaged or incomplete, its weights do not fit its
            configuration, or an argument is invalid.
    """
    if not isinstance(name, str):
        raise UserError(
            f"the name of a model is {described(name)}; expected a string, such as "
            "'organism/llama-shallow'"
        )
    loading = Loading(**options)
    return load_found(find_named(name, loading), loading)


def load_found(found: FoundModel, loading: Loading) -> Model:
    """Load the weights of a model whose configuration and tokenizer are already read.

    Notes about the model are written to standard error.

    Raises:
        UserError: the device does not exist, or loading fails as in `load_model`.
    """
    device, dtype = loading.device, loading.dtype
    if device is not None:
        check_device(device)
    elif loading.device_map is None:
        device = "cuda" if torch.cuda.is_available() else "cpu"
    # Load the model directly onto its device, since a quantized model cannot be moved afterwards.
    placing = {"device_map": loading.device_map or device}
    if loading.ranks > 1:
        placing = spreading(found.name, loading)
    if dtype == "auto" and device is not None and torch.device(device).type == "cpu":
        dtype = "float32"
    hf, notes = _load_weights(
        found,
        dtype=dtype,
        **placing,
        attn_implementation=loading.attn_implementation,
        **_quantizing(found, loading, dtype),
        **({"keep": True} if loading.keep_dequantized else {}),
    )
    hf = without_marks(dequantized(found.name, hf) if loading.dequantize else hf)
    if hf.dtype == torch.float64 and "grouped_mm" in hf.get_experts_implementation().values():
        # PyTorch's grouped matrix product, used for experts, does not support float64.
        hf.set_experts_implementation("eager")
    quantized = quantization_of(hf.config) is not None
    if quantized:
        keep_unpacked(hf)
    _run_first_pass(found, hf, spread=loading.ranks > 1)
    if found.adapter is not None:
        from interp.models.adapters import merged

        hf = merged(found.adapter, hf)
    if quantized:
        check_blocks(found.name, hf)
    source = dict(found.source)
    method = None if quantized else quantization_of(found.config)
    if found.contents is not None and found.contents.packed is not None:
        method = found.contents.packed
    if method is not None:
        source["dequantized"] = method
        notes += (f"the weights of {found.name} are dequantized from {method}",)
    if isinstance(found.location, Path):
        read = weight_names(allow_pickle=found.allow_pickle)
        held = (file.name for file in weights_in(found.location, allow_pickle=True))
        if unread := [name for name in held if name not in read]:
            notes += (
                f"{found.name} also holds {unread[0]}, which is not read and may differ from its "
                "weights",
            )
    return _noted(Model(found.name, hf, found.tokenizer, source, loading.chat(), notes))


def _noted(model: Model) -> Model:
    if model.thinking_note:
        model = replace(model, notes=(*model.notes, model.thinking_note))
    for note in model.notes:
        echo(note)
    return model


def check_on_hub(model: FoundModel | Model) -> None:
    """Raise a UserError unless a model is from the hub, by whose names servers know models."""
    if model.source.get("kind") != "hub":
        raise UserError(
            f"remote execution requires a model from the hub, but {model.name} is not one; "
            "omit remote, or use a hub name"
        )


_OF_WEIGHTS = (
    *("device", "device_map", "tensor_parallel", "quantization", "keep_dequantized"),
    *("allow_pickle", "trust_remote_code"),
)
"""Options that say how weights are loaded on this machine, or whose code computes with them."""


def load_skeleton(found: FoundModel, loading: Loading) -> Model:
    """A model without its weights, which a server has; options about weights are a UserError."""
    for name in _OF_WEIGHTS:
        if value := getattr(loading, name):
            raise UserError(
                f"got {name} {value!r}, which concerns weights on this machine, but {found.name} "
                f"runs on a server; omit {name}, or omit the server"
            )
    options = {} if loading.dtype == "auto" else {"dtype": getattr(torch, loading.dtype)}
    with as_user_error(found.format.configuration, found.name), torch.device("meta"):
        hf = found.kind.auto_for(found.config).from_config(
            deepcopy(found.config), attn_implementation=loading.attn_implementation, **options
        )
    hf.train(False)
    hf.name_or_path = str(found.location)
    return _noted(Model(found.name, hf, found.tokenizer, dict(found.source), loading.chat()))


def _load_weights(found: FoundModel, **options: Any) -> tuple[PreTrainedModel, tuple[str, ...]]:
    """The model in evaluation mode, and notes about its weights."""
    stored = _stored(found) if found.contents is None else found.contents.stored
    if stored is not None:
        trusted: bool = found.options["trust_remote_code"]
        with as_user_error(found.format.configuration, found.name):
            check_sizes(found.name, found.kind, found.config, stored, trust_remote_code=trusted)
    method = quantization_of(found.config)
    dequantizable = can_dequantize(found.config) and "quantization_config" not in options
    with (
        quantized_weights(found.name, method, also=", or --dequantize" if dequantizable else ""),
        quiet_report(),
        warnings.catch_warnings(),
    ):
        # Our own setting replaces the checkpoint's on purpose.
        warnings.filterwarnings("ignore", message="You passed .quantization_config")
        hf, info = found.format.load_weights(
            found.kind.auto_for(found.config),
            found.location,
            found.config,
            # `check_complete` reports mismatched sizes, like all other mismatches.
            ignore_mismatched_sizes=True,
            **found.options,
            **options,
        )
    hf.train(False)
    hf.name_or_path = str(found.location)
    if found.contents is not None:
        found.format.finish(found.name, hf, found.contents)
    notes = check_complete(found.name, hf, info, quantized=method is not None)
    if method is not None:
        run_eagerly(hf)
    return hf, notes


@torch.no_grad()
def _run_first_pass(found: FoundModel, hf: PreTrainedModel, *, spread: bool) -> None:
    """Read one token, to find out whether the configuration can be computed with.

    Some quantized formats unpack their weights or compile kernels in the first pass; afterwards,
    the weights, and hence the model's identity, stay the same.
    """
    method = quantization_of(found.config)
    part = "its plan of tensor parallelism" if spread else found.format.configuration
    configured = as_user_error(part, found.name)
    with quantized_weights(found.name, method) if method else configured:
        assert isinstance(hf(**one_token(hf)).logits, torch.Tensor)


def _stored(found: FoundModel) -> Stored | None:
    """Download the tensors of a model on the hub; None if the model has none."""
    revision, allow_pickle = found.options["revision"], found.allow_pickle
    folder = downloaded_weights(found.place, revision, allow_pickle=allow_pickle)
    if folder is None:
        return None
    stored = stored_tensors(found.place, folder, allow_pickle=allow_pickle)
    check_counts(found.place, read_configuration(found.place, folder), stored)
    return stored


def downloaded_weights(name: str, revision: str | None, *, allow_pickle: bool) -> Path | None:
    """Download the weights that transformers reads; their folder, None without any, or an error."""
    for first in weight_names(allow_pickle=allow_pickle):
        with as_user_error("its weights", name), suppress(EntryNotFoundError):
            file = Path(hf_hub_download(name, first, revision=revision))
            for part in indexed_files(name, file) if file.suffix == ".json" else ():
                hf_hub_download(name, part, revision=revision)
            return file.parent
    return None


def _quantizing(found: FoundModel, loading: Loading, dtype: str) -> dict[str, Any]:
    """The argument with which transformers quantizes; without one, it reads the checkpoint's."""
    quantization = loading.quantization
    if quantization is None:
        return found.dequantizing() if loading.dequantize else {}
    if not found.format.may_quantize:
        raise UserError(
            f"{one_line(found.place)} is a file whose weights are not quantized again; load it "
            f"without quantization {quantization!r}"
        )
    method = quantization_of(found.config)
    if method is not None:
        raise UserError(
            f"the weights of {one_line(found.name)} are quantized already ({method}); load them "
            f"without quantization {quantization!r}"
        )
    compute = str((found.config.dtype or "bfloat16") if dtype == "auto" else dtype)
    with as_user_error(found.format.configuration, found.name):
        compute_dtype = getattr(torch, compute.removeprefix("torch."))
    return {"quantization_config": quantization_config(quantization, compute=compute_dtype)}


def reinitialized(model: Model, *, seed: int = 0) -> Model:
    """The model with new random weights, drawn as its architecture specifies.

    The given model's own weights remain in memory.

    Raises:
        UserError: the weights are quantized, so they cannot be drawn again.
    """
    if model.quantization is not None:
        raise UserError(
            f"the weights of {model.name} are quantized ({model.quantization}) and cannot be drawn "
            "again; omit the reinitialized model with --no-reinitialized"
        )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        # transformers and torch do not annotate these calls.
        hf: Any = type(model.hf)(deepcopy(model.hf.config))
    return replace(model, hf=hf.to(device=model.device, dtype=model.hf.dtype).eval())


SMALL = 20_000_000
"""A model with fewer parameters gets one thread, because several threads would have to wait for
each other after every short operation. On two busy x86-64 cores (torch 2.13.0), attribution with
two threads was 0.11 times as fast as with one thread for a model with 1.6 million parameters, and
0.5 times as fast for a model with 65 million (hidden size 1,024, 4 layers). On idle cores, large
models are faster with more threads, so they keep PyTorch's default number."""


def set_threads(model: Model, threads: int | None) -> None:
    """Set the number of threads for a model in this process, with a message if it is reduced.

    `threads` is the value of --threads; without it, OMP_NUM_THREADS and devices other than the CPU
    stay as they are.
    """
    if threads is not None:
        torch.set_num_threads(threads)
    elif model.device.type == "cpu" and "OMP_NUM_THREADS" not in os.environ:
        own = _own_threads()
        threads = 1 if model.hf.num_parameters() < SMALL else own
        torch.set_num_threads(threads)
        if threads < own:
            echo(f"{model.name} is small and gets 1 of {own} threads; use --threads to change this")


@cache
def _own_threads() -> int:
    """PyTorch's default number of threads, before any model has changed it."""
    return torch.get_num_threads()
