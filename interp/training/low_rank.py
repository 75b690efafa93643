"""Training of a LoRA adapter beside a model's weights, by peft (Hu et al. 2021)."""

import json
import warnings
from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedModel

from interp.errors import UserError
from interp.files import remove_plain
from interp.models.adapters import NAME, SETTINGS, Base, check_peft, write_base
from interp.models.architectures import CLASSIFIER
from interp.training.start import Start

SCALE = 2
"""s of W + s B A, whatever the rank."""


def check_low_rank(begun: Start) -> None:
    """Check that a model is one to train an adapter for.

    Raises:
        UserError: it is not, or peft is missing.
    """
    check_peft()
    if begun.found is None:
        raise UserError(
            "an adapter changes a trained model; leave --lora-rank or --from-scratch out"
        )
    if begun.kind is CLASSIFIER:
        raise UserError(
            f"{begun.name} is a {begun.kind.name}, whose head is learned as a whole; leave "
            "--lora-rank out"
        )
    if begun.found.adapter is not None:
        raise UserError(
            f"{begun.name} is an adapter itself; leave --lora-rank out to train it and its base "
            "as one model"
        )


def low_rank(hf: PreTrainedModel, rank: int, *, seed: int) -> Any:
    """A model with an adapter to train; its own weights stay as they are.

    Every linear layer but the unembedding is changed.

    Args:
        hf: the model, changed in place.
        rank: of each change.
        seed: decides A; B begins at zero.

    Returns:
        peft's `PeftModel`, whose checkpoints hold the adapter alone.
    """
    from peft import LoraConfig, get_peft_model

    torch.manual_seed(seed)
    config = LoraConfig(r=rank, lora_alpha=SCALE * rank, target_modules="all-linear")
    with warnings.catch_warnings(), torch.device(next(hf.parameters()).device):
        # peft asks transformers by a name that is deprecated.
        warnings.filterwarnings("ignore", category=FutureWarning, message=".*checkpointing")
        wrapped = get_peft_model(hf, config)
    # With a name, peft looks on the hub for the model whenever a checkpoint is saved.
    wrapped.peft_config[NAME].base_model_name_or_path = ""
    return wrapped


def save_adapter(wrapped: Any, folder: Path, base: Base) -> None:
    """Save a trained adapter as `interp.models.adapters` reads it.

    Args:
        wrapped: what `low_rank` gave.
        folder: an empty one.
        base: what it was trained on.
    """
    wrapped.save_pretrained(folder, save_embedding_layers=False)
    remove_plain(folder, ["README.md"])  # peft's form for a model card, with nothing filled in
    file = folder / SETTINGS
    settings = json.loads(file.read_text(encoding="utf-8"))
    settings |= {
        "base_model_name_or_path": base.name,
        "target_modules": sorted(settings["target_modules"]),  # a set, in any order
    }
    file.write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")
    write_base(folder, base)
