"""LoRA adapters: folders with low-rank changes to a base model's weights (Hu et al. 2021).

peft merges an adapter into its base on loading, so the result is measured, hooked and patched like
any other model. Adapter folders are not trusted:

1. The base is a model on this machine whose checksum is recorded with the adapter, or a model that
   the user names. Code that comes with a base is never run.
2. Weights are safetensors, with exactly the tensors that the settings require.
3. Only settings of plain LoRA are accepted.
"""

import hashlib
import json
import warnings
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Literal, cast

import torch
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError
from transformers import PreTrainedModel

from interp.errors import UserError, one_line
from interp.files import RECORD_BYTES, checksum, read_bytes, remove_plain
from interp.models.checkpoint import as_user_error, check_regular, header
from interp.models.names import is_local
from interp.models.packaged import ORGANISMS, packaged
from interp.models.weights import some

SETTINGS = "adapter_config.json"
WEIGHTS = "adapter_model.safetensors"
BASE = "base.json"

NAME = "default"
"""The name that peft gives to a model's only adapter."""

_PREFIX = "base_model.model."
"""Prefix that peft's wrapper adds to the names of the tensors that it saves."""

_LORA_CONFIG = {"r", "lora_alpha", "target_modules", "use_rslora", "fan_in_fan_out"}
"""Settings passed to peft."""

_WITHOUT_EFFECT = frozenset(
    {
        "auto_mapping",
        "inference_mode",
        "lora_dropout",  # used only in training
        "megatron_core",
        "peft_version",
        "qalora_group_size",
        "revision",
        "task_type",
    }
)
"""Settings that do not affect the weights of a merged adapter."""


class Settings(BaseModel):
    """The supported settings in adapter_config.json; every other setting must be switched off."""

    model_config = ConfigDict(strict=True, extra="allow", frozen=True)

    peft_type: Literal["LORA"]
    base_model_name_or_path: Annotated[str, StringConstraints(max_length=4096)] | None = None
    r: Annotated[int, Field(ge=1)]
    lora_alpha: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    target_modules: list[str] | Literal["all-linear"]
    """Names of modules, or the ends of their paths. Patterns are rejected, because matching can
    take forever."""
    use_rslora: bool = False
    fan_in_fan_out: bool = False
    bias: Literal["none"] = "none"
    init_lora_weights: bool | Literal["gaussian"] = True
    """Allowed initializations of an adapter; all others change the base's own weights."""


class Base(BaseModel):
    """base.json: the model that an adapter was trained on."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    name: Annotated[str, StringConstraints(min_length=1, max_length=4096)]
    checksum: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")] | None
    """A hash of the base's configuration and weights; None if the base comes from the hub."""


@dataclass(frozen=True, slots=True)
class Adapter:
    """An adapter with checked settings and tensors."""

    name: str
    folder: Path
    settings: Settings
    base: Base | None
    """The base that the adapter was trained on; None if this package did not train it."""

    def checksum(self) -> str:
        """A hash of the adapter's settings and weights."""
        parts = (checksum(self.folder / file) for file in (SETTINGS, WEIGHTS))
        return hashlib.sha256(" ".join(parts).encode()).hexdigest()


def read_adapter(name: str, folder: Path) -> Adapter:
    """The adapter in a folder, without loading its weights.

    Raises:
        UserError: a file is missing, damaged or not a regular file, the settings are not plain
            LoRA, or a tensor has the wrong rank.
    """
    shown = one_line(name)
    check_regular(name, folder)
    if (folder / "config.json").is_file():
        raise UserError(
            f"{shown} holds both a model (config.json) and an adapter ({SETTINGS}); keep them in "
            "separate folders"
        )
    with as_user_error(SETTINGS, name):
        try:
            settings = Settings.model_validate_json(
                read_bytes(folder / SETTINGS, limit=RECORD_BYTES)
            )
        except ValidationError as error:
            first = error.errors()[0]
            if not first["loc"] or first["type"] == "missing":
                raise
            raise _not_plain(shown, str(first["loc"][0]), first["input"]) from error
    for key, value in (settings.model_extra or {}).items():
        if key not in _WITHOUT_EFFECT and value not in (None, False, {}, []):
            raise _not_plain(shown, key, value)
    if not (folder / WEIGHTS).is_file():
        raise UserError(
            f"{shown} has no {WEIGHTS}; other formats are not read because they can run code"
        )
    with as_user_error(WEIGHTS, name):
        _check_ranks(name, folder / WEIGHTS, settings.r)
    base = None
    if (folder / BASE).is_file():
        with as_user_error(BASE, name):
            base = Base.model_validate_json(read_bytes(folder / BASE, limit=RECORD_BYTES))
    return Adapter(name, folder, settings, base)


_EXPECTED = {
    "bias": "'none', since the base's own biases would change",
    "target_modules": "a list of module names, not a pattern",
}
"""What plain LoRA requires of settings that other adapters often use."""


def _not_plain(shown: str, key: str, value: object) -> UserError:
    expected = f": {_EXPECTED[key]}" if key in _EXPECTED else ""
    return UserError(
        f"{SETTINGS} of {shown} sets {one_line(key, 60)} to {one_line(repr(value), 60)}; expected "
        f"plain LoRA{expected}. Merge the adapter into its base with peft, and pass the folder of "
        "the merged model"
    )


def base_of(adapter: Adapter, given: str | None) -> str:
    """The name of the base that an adapter is merged into; the user's choice takes precedence.

    Raises:
        UserError: the user gave no base, and the base that the folder names cannot be checked,
            because it is on the hub or its checksum was not recorded.
    """
    if given is not None:
        return given
    base = adapter.base
    if base and base.checksum and (packaged(base.name) is ORGANISMS or is_local(base.name)):
        return base.name
    named = base.name if base else adapter.settings.base_model_name_or_path
    raise UserError(
        f"the adapter {one_line(adapter.name)} needs its base"
        + (
            f", which its own files call {one_line(named)!r}; pass it with --base if you trust it"
            if named
            else "; pass the model that it was trained on with --base"
        )
    )


def _check_ranks(name: str, file: Path, rank: int) -> None:
    """Check, before anything is built, that the tensors have the rank given in the settings."""
    for key, tensor in header(file):
        place = {"lora_A.weight": 0, "lora_B.weight": 1}.get(".".join(key.split(".")[-2:]))
        if place is None or len(tensor.shape) != 2 or tensor.shape[place] != rank:
            raise UserError(
                f"the tensor {one_line(key)} of {one_line(name)} has the shape {tensor.shape}; "
                f"expected lora_A and lora_B of rank {rank}, as in its {SETTINGS}"
            )


def merged(adapter: Adapter, hf: PreTrainedModel) -> PreTrainedModel:
    """A base model, changed in place by an adapter: W + s B A (Hu et al. 2021, Section 4.1).

    s is lora_alpha / r, or lora_alpha / sqrt(r) with use_rslora (Kalajdzievski 2023). A tensor that
    is missing, unexpected, misshapen or not finite raises a UserError.
    """
    check_peft()
    from peft import LoraConfig, PeftModel, get_peft_model_state_dict

    # Pass the checked settings explicitly, because peft would also read other settings from the
    # file.
    config = LoraConfig(**adapter.settings.model_dump(include=_LORA_CONFIG))
    with as_user_error(WEIGHTS, adapter.name), _quiet_peft():
        stored = {key for key, _ in header(adapter.folder / WEIGHTS)}
        _check_untied(adapter.name, hf, stored)
        wrapped: Any = PeftModel.from_pretrained(hf, str(adapter.folder), config=config)
        expected = get_peft_model_state_dict(wrapped, save_embedding_layers=False)
        _check_names(adapter.name, stored, {*expected})
        model = cast(PreTrainedModel, wrapped.merge_and_unload(safe_merge=True))
    model.requires_grad_(True)  # peft has frozen its weights
    return model


@contextmanager
def _quiet_peft() -> Iterator[None]:
    """Silence peft's warnings about deprecated calls and about missing keys, checked elsewhere."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=FutureWarning, message=".*checkpointing")
        warnings.filterwarnings("ignore", message="Found missing adapter keys")
        yield


def _check_names(name: str, stored: set[str], expected: set[str]) -> None:
    """Check that the tensors match the settings exactly, which peft does not check."""
    for what, keys in (("lacks", expected - stored), ("holds", stored - expected)):
        if keys:
            raise UserError(
                f"{WEIGHTS} of {one_line(name)} {what} "
                f"{some(sorted(key.removeprefix(_PREFIX) for key in keys))}; expected changes to "
                f"the modules that its {SETTINGS} names, in a model like its base"
            )


def _check_untied(name: str, hf: PreTrainedModel, tensors: Collection[str]) -> None:
    """Reject an adapter that changes one of two modules with a shared weight: both would change."""
    changed = {key.removeprefix(_PREFIX).partition(".lora_")[0] for key in tensors}
    ends = (hf.get_input_embeddings(), hf.get_output_embeddings())
    tied = getattr(hf.config.get_text_config(), "tie_word_embeddings", False)
    if tied and any(module in ends for path, module in hf.named_modules() if path in changed):
        raise UserError(
            f"the adapter {one_line(name)} changes the embeddings or the unembedding, which "
            "share one weight in its base; such a change cannot be merged"
        )


def check_peft() -> None:
    """Raise a UserError if peft is not installed."""
    if find_spec("peft") is None:
        raise UserError(
            "LoRA adapters require peft, which is not installed; run pip install 'interp[lora]'"
        )


SCALE = 2
"""The factor s in W + s B A during training, at every rank."""


def low_rank(hf: PreTrainedModel, rank: int, *, seed: int, modules: Sequence[str] = ()) -> Any:
    """Add an adapter in place to linear layers of a model.

    The model's own weights do not change. In W + s B A, A is drawn at random with the seed, and B
    is zero at first.

    Args:
        hf: the model.
        rank: the rank of each change B A.
        seed: the seed of A.
        modules: paths of the layers; if empty, all linear layers except the unembedding.

    Returns:
        peft's `PeftModel`, whose checkpoints contain only the adapter.
    """
    from peft import LoraConfig, get_peft_model

    torch.manual_seed(seed)
    config = LoraConfig(r=rank, lora_alpha=SCALE * rank, target_modules=[*modules] or "all-linear")
    with _quiet_peft(), torch.device(next(hf.parameters()).device):
        wrapped = get_peft_model(hf, config)
    # If this were set, peft would look for the model on the hub each time it saves a checkpoint.
    wrapped.peft_config[NAME].base_model_name_or_path = ""
    return wrapped


def save_adapter(wrapped: Any, folder: Path, base: Base) -> None:
    """Save an adapter created by `low_rank` and trained on `base` in an empty folder."""
    wrapped.save_pretrained(folder, save_embedding_layers=False)
    remove_plain(folder, ["README.md"])  # peft's empty template of a model card
    file = folder / SETTINGS
    settings = json.loads(file.read_text(encoding="utf-8"))
    settings |= {
        "base_model_name_or_path": base.name,
        "target_modules": sorted(settings["target_modules"]),  # a set, whose order varies
    }
    file.write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")
    (folder / BASE).write_text(base.model_dump_json(indent=2) + "\n", encoding="utf-8")
