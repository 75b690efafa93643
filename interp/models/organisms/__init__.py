"""The packaged organisms: small trained models with planted knowledge and habits.

Each folder next to this file is one organism: safetensors, tokenizer, chat template, card.
"""

import json

from interp.models.packaged import ORGANISMS

PREFIX = ORGANISMS.prefix
"""Prefix of the names of packaged organisms."""

organism_folder, organism_card = ORGANISMS.folder, ORGANISMS.card

DEFAULT = "organism/llama-shallow"
"""The model that commands use for the default system if --model is not given."""


def organism_names(*systems: str) -> list[str]:
    """Names of the packaged organisms, with their prefix: all, or those trained on some systems."""
    names = ORGANISMS.names()
    return [name for name in names if not systems or organism_card(name)["system"] in systems]


def organism_layers(name: str) -> int:
    """Number of layers in a packaged organism."""
    config = json.loads((organism_folder(name) / "config.json").read_text(encoding="utf-8"))
    return int(config["num_hidden_layers"])


def default_organism(system: str) -> str:
    """The model for commands without --model: an organism trained on the system's prompts.

    For a system without an organism, such as one from another package, it is `DEFAULT`.
    """
    # An organism of "x" has also learned a system "x-mixed".
    learned = [
        name
        for name in organism_names()
        if f"{system}-".startswith(f"{organism_card(name)['system']}-")
    ]
    # A tuned model's name sorts after its base's name, so the last name is preferred.
    return DEFAULT if DEFAULT in learned or not learned else learned[-1]
