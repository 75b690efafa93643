"""Load a model by hub name, local folder or organism name."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import (
    AutoConfig,
    BitsAndBytesConfig,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from interp.choices import Quantization
from interp.errors import UserError, one_line
from interp.models.checkpoint import Stored, check_configuration, check_folder, stored_tensors
from interp.models.completeness import check_complete, quiet_report
from interp.models.devices import check_device
from interp.models.downloads import cached_commit, downloaded_weights
from interp.models.kinds import Kind, kind_of
from interp.models.loading import Loading
from interp.models.model import Model
from interp.models.names import canonical_name
from interp.models.places import locate
from interp.models.problems import reading
from interp.models.proportion import check_counts, check_sizes
from interp.models.quantization import check_blocks, quantization_config, quantization_of
from interp.models.tokenizer import check_tokenizer, load_tokenizer
from interp.options import with_options_of


@with_options_of(Loading)
def load_model(name: str, **options: Any) -> Model:
    """Load a causal language model, sequence classifier or text-to-text model, and its tokenizer.

    Which of them it is follows from the `architectures` of its configuration.

    Args:
        name: hub name, local folder, or "organism/NAME" for a packaged organism.
        **options: those of `Loading`.

    Raises:
        UserError: the model cannot be found, is damaged or incomplete, its weights belong to
            another configuration, or an argument is not understood.
    """
    loading = Loading(**options)
    return load_found(find_model(name, loading), loading)


@dataclass(frozen=True, slots=True)
class FoundModel:
    """A model that is there, with its weights not yet loaded."""

    name: str
    """The canonical one."""
    location: Path | str
    """Local folder, or name on the hub."""
    source: dict[str, str]
    """Where it comes from, for records."""
    fingerprint: str | None
    """Changes when a file of a local folder does; None on the hub, where the commit does."""
    tokenizer: PreTrainedTokenizerBase
    config: PreTrainedConfig
    kind: Kind
    stored: Stored | None
    """The tensors of a local folder; None on the hub, where they may not be here yet."""
    options: Mapping[str, Any]
    """How it is to be read: revision, use_safetensors, trust_remote_code."""


def load_found(found: FoundModel, loading: Loading) -> Model:
    """Load a model that was found, without reading its configuration and tokenizer again.

    Raises:
        UserError: the device is not there, or those of `load_model`.
    """
    device, dtype = loading.device, loading.dtype
    if device is not None:
        check_device(device)
    elif loading.device_map is None:
        device = "cuda" if torch.cuda.is_available() else "cpu"
    if dtype == "auto" and device is not None and torch.device(device).type == "cpu":
        dtype = "float32"
    with reading("config.json", found.name):
        quantizing = _quantizing(found, loading.quantization, dtype)
    hf, notes = _load_weights(
        found,
        dtype=dtype,
        # Straight onto its device: a quantized model cannot be moved there afterwards.
        device_map=loading.device_map or device,
        quantization_config=quantizing,
        attn_implementation=loading.attn_implementation,
    )
    check_blocks(found.name, hf)
    _keep_float64(hf)
    return Model(found.name, hf, found.tokenizer, found.source, loading.chat(), notes)


def find_model(
    name: str,
    loading: Loading,
    kind_in: Callable[[PreTrainedConfig, Sequence[str]], Kind] = kind_of,
) -> FoundModel:
    """Find a model and read its configuration and tokenizer, which takes little time and memory.

    Args:
        name: hub name, local folder, or "organism/NAME" for a packaged organism.
        loading: how it is loaded.
        kind_in: its kind, by its configuration and the names of its classes.

    Raises:
        UserError: the model cannot be found, is damaged or incomplete.
    """
    name = canonical_name(name)
    place = locate(name, loading.revision)
    location, source = place.location, place.source
    stored = None
    if isinstance(location, Path):
        with reading("its folder", name):
            check_folder(name, location, allow_pickle=loading.allow_pickle)
        check_configuration(name, location)
        stored = stored_tensors(name, location, allow_pickle=loading.allow_pickle)
    options: dict[str, Any] = {
        "revision": loading.revision,
        "trust_remote_code": loading.trust_remote_code,
    }
    with reading("config.json", name):
        config = AutoConfig.from_pretrained(location, **options)
        kind = kind_in(config, config.architectures or ())
        if stored is not None:
            check_counts(name, config, stored)
    with reading("its tokenizer", name):
        tokenizer = load_tokenizer(location, **options)
        check_tokenizer(name, tokenizer, config)
    commit = None if isinstance(location, Path) else cached_commit(location, loading.revision)
    if commit is not None:
        # The weights are those that belong to this configuration, whatever is pushed meanwhile.
        source, options["revision"] = {**source, "commit": commit}, commit
    with reading("its folder", name):
        fingerprint = _fingerprint(location)
    options["use_safetensors"] = None if loading.allow_pickle else True
    return FoundModel(name, location, source, fingerprint, tokenizer, config, kind, stored, options)


def _load_weights(found: FoundModel, **options: Any) -> tuple[PreTrainedModel, tuple[str, ...]]:
    """The model in evaluation mode, and notes on its weights."""
    stored = _stored(found) if found.stored is None else found.stored
    if stored is not None:
        with reading("config.json", found.name):
            check_sizes(
                found.name,
                found.kind,
                found.config,
                stored,
                trust_remote_code=found.options["trust_remote_code"],
            )
    with reading("its weights", found.name), quiet_report():
        # By its types, transformers never returns the account of what was loaded.
        loaded: Any = found.kind.auto.from_pretrained(
            found.location,
            output_loading_info=True,
            # `check_complete` reports these, like every other mismatch.
            ignore_mismatched_sizes=True,
            **found.options,
            **options,
        )
    hf, info = loaded
    return hf.train(False), check_complete(found.name, hf, info)


def _keep_float64(hf: PreTrainedModel) -> None:
    """PyTorch multiplies the matrices of several experts at once in float32 at most."""
    if hf.dtype == torch.float64 and "grouped_mm" in hf.get_experts_implementation().values():
        hf.set_experts_implementation("eager")


def _stored(found: FoundModel) -> Stored | None:
    """The tensors of a model on the hub, which are downloaded for it; None if it has none."""
    name, options = found.name, found.options
    allow_pickle = options["use_safetensors"] is None
    folder = downloaded_weights(name, options["revision"], allow_pickle=allow_pickle)
    if folder is None:
        return None
    stored = stored_tensors(name, folder, allow_pickle=allow_pickle)
    check_counts(name, found.config, stored)
    return stored


def _fingerprint(location: Path | str) -> str | None:
    """A hash over names, sizes and times of change of a folder's files, without reading them."""
    if not isinstance(location, Path):
        return None
    seen = [
        (str(file.relative_to(location)), file.stat().st_size, file.stat().st_mtime_ns)
        for file in sorted(location.rglob("*"))
        if file.is_file()
    ]
    return hashlib.sha256(repr(seen).encode()).hexdigest()[:16]


def _quantizing(
    found: FoundModel, quantization: Quantization | None, dtype: str
) -> BitsAndBytesConfig | None:
    if quantization is None:
        return None
    own = quantization_of(found.config)
    if own is not None:
        raise UserError(
            f"the weights of {one_line(found.name)} are quantized already ({own}); load them "
            f"without quantization {quantization!r}"
        )
    compute = str((found.config.dtype or "bfloat16") if dtype == "auto" else dtype)
    return quantization_config(quantization, compute=getattr(torch, compute.removeprefix("torch.")))
