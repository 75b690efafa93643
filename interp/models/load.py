"""Load a model by hub name, local folder or organism name."""

import hashlib
from collections.abc import Mapping
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

from interp.errors import UserError, one_line
from interp.models.chat_format import DEFAULT_DATE, ChatFormat
from interp.models.checkpoint import Stored, check_configuration, check_folder, stored_tensors
from interp.models.completeness import check_complete, quiet_report
from interp.models.devices import check_placement
from interp.models.dtypes import canonical_dtype
from interp.models.kinds import Kind, kind_of
from interp.models.model import Model
from interp.models.names import canonical_name
from interp.models.places import locate
from interp.models.problems import reading
from interp.models.proportion import check_counts, check_sizes
from interp.models.quantization import check_blocks, quantization_config, quantization_of
from interp.models.tokenizer import check_tokenizer, load_tokenizer


def load_model(
    name: str,
    *,
    device: str | None = None,
    dtype: str = "auto",
    device_map: str | None = None,
    quantization: str | None = None,
    revision: str | None = None,
    attn_implementation: str | None = None,
    allow_pickle: bool = False,
    trust_remote_code: bool = False,
    chat_template: bool = True,
    system_prompt: str | None = None,
    template_date: str = DEFAULT_DATE,
) -> Model:
    """Load a causal language model, sequence classifier or text-to-text model, and its tokenizer.

    Which of them it is follows from the `architectures` of its configuration.

    Args:
        name: hub name, local folder, or "organism/NAME" for a packaged organism.
        device: where to put the model, such as "cpu" or "cuda:0"; a GPU if there is one.
        dtype: one of `interp.choices.DTYPES`, or its short name, such as "bf16".
        device_map: spread the model over devices as accelerate does ("auto"); excludes `device`.
        quantization: "8bit" or "4bit" to have bitsandbytes quantize the weights as they are loaded;
            a checkpoint that is quantized loads as it is. See `Model.quantization`.
        revision: branch, tag or commit on the hub.
        attn_implementation: "sdpa", "eager", "flash_attention_2" ...; the architecture's own
            default if not given.
        allow_pickle: also load weights that are not safetensors (they can run code).
        trust_remote_code: run model code that comes with the weights.
        chat_template: write prompts in the model's chat template, where it has one; else plainly.
        system_prompt: what the chat template writes before each prompt; without one, whatever the
            template inserts by itself.
        template_date: what chat templates that write the date take for today, YYYY-MM-DD.

    Raises:
        UserError: the model cannot be found, is damaged or incomplete, its weights belong to
            another configuration, or an argument is not understood.
    """
    chat = ChatFormat(template=chat_template, system=system_prompt, date=template_date)
    dtype = canonical_dtype(dtype)
    check_placement(device, device_map)
    found = find_model(
        name, revision=revision, allow_pickle=allow_pickle, trust_remote_code=trust_remote_code
    )
    return load_found(
        found,
        device=device,
        dtype=dtype,
        device_map=device_map,
        quantization=quantization,
        attn_implementation=attn_implementation,
        chat=chat,
    )


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
    """Changes when a file of a local folder does; None on the hub, where the commit tells."""
    tokenizer: PreTrainedTokenizerBase
    config: PreTrainedConfig
    kind: Kind
    stored: Stored | None
    """The tensors of a local folder; None on the hub, where they may not be here yet."""
    options: Mapping[str, Any]
    """How it is to be read: revision, use_safetensors, trust_remote_code."""


def load_found(
    found: FoundModel,
    *,
    device: str | None = None,
    dtype: str = "auto",
    device_map: str | None = None,
    quantization: str | None = None,
    attn_implementation: str | None = None,
    chat: ChatFormat | None = None,
) -> Model:
    """Load a model that was found, without reading its configuration and tokenizer again.

    Arguments and errors are those of `load_model`.
    """
    dtype = canonical_dtype(dtype)
    check_placement(device, device_map)
    if device is None and device_map is None:
        device = "cuda" if torch.cuda.is_available() else "cpu"
    if dtype == "auto" and device is not None and torch.device(device).type == "cpu":
        dtype = "float32"
    with reading("config.json", found.name):
        quantizing = None if quantization is None else _quantizing(found, quantization, dtype)
    hf, notes = _load_weights(
        found,
        dtype=dtype,
        # Straight onto its device: a quantized model cannot be moved there afterwards.
        device_map=device_map or device,
        quantization_config=quantizing,
        attn_implementation=attn_implementation,
    )
    check_blocks(found.name, hf)
    return Model(found.name, hf, found.tokenizer, found.source, chat or ChatFormat(), notes)


def find_model(
    name: str,
    *,
    revision: str | None = None,
    allow_pickle: bool = False,
    trust_remote_code: bool = False,
) -> FoundModel:
    """Find a model and read its configuration and tokenizer, which takes little time and memory.

    Raises:
        UserError: the model cannot be found, is damaged or incomplete.
    """
    name = canonical_name(name)
    place = locate(name, revision)
    location, source = place.location, place.source
    stored = None
    if isinstance(location, Path):
        with reading("its folder", name):
            check_folder(name, location, allow_pickle=allow_pickle)
        check_configuration(name, location)
        stored = stored_tensors(name, location, allow_pickle=allow_pickle)
    options: dict[str, Any] = {"revision": revision, "trust_remote_code": trust_remote_code}
    with reading("config.json", name):
        config = AutoConfig.from_pretrained(location, **options)
        kind = kind_of(config, config.architectures or ())
        if stored is not None:
            check_counts(name, config, stored)
    with reading("its tokenizer", name):
        tokenizer = load_tokenizer(location, **options)
        check_tokenizer(name, tokenizer, config)
    commit = getattr(config, "_commit_hash", None)
    source = {**source, "commit": commit} if commit else source
    with reading("its folder", name):
        fingerprint = _fingerprint(location)
    options["use_safetensors"] = None if allow_pickle else True
    return FoundModel(name, location, source, fingerprint, tokenizer, config, kind, stored, options)


def _load_weights(found: FoundModel, **options: Any) -> tuple[PreTrainedModel, tuple[str, ...]]:
    """The model in evaluation mode, and what there is to tell about its weights."""
    if found.stored is not None:
        with reading("config.json", found.name):
            check_sizes(
                found.name,
                found.kind,
                found.config,
                found.stored,
                trust_remote_code=found.options["trust_remote_code"],
            )
    with reading("its weights", found.name), quiet_report():
        # By its types, transformers never returns the account of what was loaded.
        loaded: Any = found.kind.auto.from_pretrained(
            found.location,
            output_loading_info=True,
            # Told like all that does not fit, by `check_complete`.
            ignore_mismatched_sizes=True,
            **found.options,
            **options,
        )
    hf, info = loaded
    return hf.train(False), check_complete(found.name, hf, info)


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


def _quantizing(found: FoundModel, quantization: str, dtype: str) -> BitsAndBytesConfig:
    own = quantization_of(found.config)
    if own is not None:
        raise UserError(
            f"the weights of {one_line(found.name)} are quantized already ({own}); load them "
            f"without quantization {quantization!r}"
        )
    compute = str((found.config.dtype or "bfloat16") if dtype == "auto" else dtype)
    return quantization_config(quantization, compute=getattr(torch, compute.removeprefix("torch.")))
