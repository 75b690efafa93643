"""Load a model by hub name, local folder or organism name."""

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoTokenizer,
    BitsAndBytesConfig,
    PreTrainedConfig,
    PreTrainedTokenizerBase,
)

from interp.errors import UserError
from interp.models.chat_format import DEFAULT_DATE, ChatFormat
from interp.models.model import Model
from interp.models.organisms import PREFIX, organism_folder
from interp.models.quantization import quantization_config, quantization_of

DTYPES = ("auto", "float32", "bfloat16", "float16", "float64")
"""Values of --dtype; auto is float32 on a CPU and the checkpoint's own type elsewhere."""

WEIGHT_FILES = ("model.safetensors", "model.safetensors.index.json")
PICKLE_FILES = ("pytorch_model.bin", "pytorch_model.bin.index.json")

_LOADING_ERRORS = (OSError, ValueError, ImportError, KeyError, SafetensorError)


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
    """Load a causal language model and its tokenizer.

    Args:
        name: hub name, local folder, or "organism/NAME" for a packaged organism.
        device: where to put the model, such as "cpu" or "cuda:0"; a GPU if there is one.
        dtype: one of `DTYPES`.
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
        UserError: the model cannot be found, is incomplete, or an argument is not understood.
    """
    chat = ChatFormat(template=chat_template, system=system_prompt, date=template_date)
    if device is not None and device_map is not None:
        raise UserError(
            f"both device {device!r} and device_map {device_map!r} were given; give one of them"
        )
    if dtype not in DTYPES:
        raise UserError(f"unknown dtype {dtype!r}; expected one of {', '.join(DTYPES)}")
    if device is None and device_map is None:
        device = "cuda" if torch.cuda.is_available() else "cpu"
    _check_device(device)
    found = find_model(
        name, revision=revision, allow_pickle=allow_pickle, trust_remote_code=trust_remote_code
    )
    if dtype == "auto" and device is not None and torch.device(device).type == "cpu":
        dtype = "float32"
    quantizing = None if quantization is None else _quantizing(found, quantization, dtype)
    try:
        hf = AutoModelForCausalLM.from_pretrained(
            found.location,
            dtype=dtype,
            # Straight onto its device: a quantized model cannot be moved there afterwards.
            device_map=device_map or device,
            quantization_config=quantizing,
            attn_implementation=attn_implementation,
            use_safetensors=None if allow_pickle else True,
            revision=revision,
            trust_remote_code=trust_remote_code,
        )
    except _LOADING_ERRORS as error:
        raise UserError(_loading_problem(name, error)) from error
    return Model(name, hf.train(False), found.tokenizer, found.source, chat)


@dataclass(frozen=True, slots=True)
class FoundModel:
    """A model that is there, with its weights not yet loaded."""

    location: Path | str
    """Local folder, or name on the hub."""
    source: dict[str, str]
    """Where it comes from, for records."""
    fingerprint: str | None
    """Changes when a file of a local folder does; None on the hub, where the commit tells."""
    tokenizer: PreTrainedTokenizerBase
    config: PreTrainedConfig


def find_model(
    name: str,
    *,
    revision: str | None = None,
    allow_pickle: bool = False,
    trust_remote_code: bool = False,
) -> FoundModel:
    """Find a model and read its configuration and tokenizer, which takes little time and memory.

    Raises:
        UserError: the model cannot be found or is incomplete.
    """
    location, source = _locate(name, revision)
    if isinstance(location, Path):
        _check_folder(location, allow_pickle)
    options = {"revision": revision, "trust_remote_code": trust_remote_code}
    try:
        config = AutoConfig.from_pretrained(location, **options)
        tokenizer = AutoTokenizer.from_pretrained(location, **options)
    except _LOADING_ERRORS as error:
        raise UserError(_loading_problem(name, error)) from error
    _check_tokenizer(name, tokenizer, config)
    commit = getattr(config, "_commit_hash", None)
    source = {**source, "commit": commit} if commit else source
    return FoundModel(location, source, _fingerprint(location), tokenizer, config)


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
            f"the weights of {found.source['name']} are quantized already ({own}); load them "
            f"without quantization {quantization!r}"
        )
    compute = str((found.config.dtype or "bfloat16") if dtype == "auto" else dtype)
    return quantization_config(quantization, compute=getattr(torch, compute.removeprefix("torch.")))


def _locate(name: str, revision: str | None) -> tuple[Path | str, dict[str, str]]:
    if name.startswith(PREFIX):
        return organism_folder(name), {"kind": "organism", "name": name}
    if Path(name).is_dir():
        return Path(name), {"kind": "folder", "name": name}
    looks_local = name.startswith((".", "~", os.sep)) or name.count("/") > 1
    if looks_local or not name:
        raise UserError(
            f"no model folder {name!r}; expected a folder with config.json, weights and tokenizer, "
            "a hub name such as org/model, or organism/NAME"
        )
    return name, {"kind": "hub", "name": name, "revision": revision or "main"}


def _check_device(device: str | None) -> None:
    if device is None:
        return
    try:
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise UserError(
            f"device {device!r} cannot be used: {reason}. Expected cpu, or cuda on a machine "
            "with a GPU that this PyTorch supports"
        ) from error


def _check_folder(folder: Path, allow_pickle: bool) -> None:
    if not (folder / "config.json").exists():
        raise UserError(f"{folder} has no config.json; expected a saved Hugging Face model")
    if not any((folder / file).exists() for file in WEIGHT_FILES):
        pickled = any((folder / file).exists() for file in PICKLE_FILES)
        if pickled and not allow_pickle:
            raise UserError(
                f"{folder} has its weights as a pickle, which can run code when loaded; "
                "give --allow-pickle if you trust it, or convert it to safetensors"
            )
        if not pickled:
            raise UserError(f"{folder} has no weights; expected {' or '.join(WEIGHT_FILES)}")
    if not any((folder / file).exists() for file in ("tokenizer.json", "tokenizer_config.json")):
        raise UserError(f"{folder} has no tokenizer; expected tokenizer.json, saved with the model")


def _check_tokenizer(
    name: str, tokenizer: PreTrainedTokenizerBase, config: PreTrainedConfig
) -> None:
    vocabulary = config.get_text_config().vocab_size
    largest = max(tokenizer.get_vocab().values(), default=-1)
    if largest >= vocabulary:
        raise UserError(
            f"the tokenizer of {name} has token ids up to {largest}, the model has {vocabulary} "
            "embeddings; the tokenizer belongs to another model"
        )


def _loading_problem(name: str, error: Exception) -> str:
    first_lines = " ".join(str(error).split())[:400]
    return (
        f"the model {name!r} cannot be loaded: {first_lines} "
        "Expected a hub name that this machine can reach or has cached, a local folder, or "
        "organism/NAME (python -m interp models lists them)"
    )
