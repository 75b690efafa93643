"""What the numbers of a run depend on, and whether a folder holds that very run and model."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from interp.errors import UserError
from interp.measurement import Measurement
from interp.prompts.prompt_set import PromptSet
from interp.runs.shards import code_version, column_types


def run_origin(
    prompts: PromptSet, measurement: str, parameters: Mapping[str, object]
) -> dict[str, Any]:
    """What a run is, as JSON holds it."""
    origin = {
        "measurement": measurement,
        "parameters": dict(parameters),
        "system": prompts.system,
        "seed": prompts.seed,
        "prompts": len(prompts),
        "data": prompts.description,
        "data_hash": prompts.content_hash(),
        "code": code_version(),
    }
    as_json: dict[str, Any] = json.loads(json.dumps(origin))
    return as_json


def model_record(measurement: Measurement) -> dict[str, Any]:
    """What a run keeps of a model, and of the tables that it fills."""
    model = measurement.model
    return {
        "name": model.name,
        **model.source,
        "identity": model.identity,
        "architecture": model.hf.config.model_type,
        "parameters": model.hf.num_parameters(),
        "vocabulary": model.hf.config.get_text_config().vocab_size,
        "dtype": model.dtype,
        "quantization": model.quantization,
        "device": str(model.device),
        "attn_implementation": model.attn_implementation,
        "chat": {**asdict(model.chat), **asdict(model.chat_frame)},
        "tables": {table: column_types(schema) for table, schema in measurement.tables.items()},
    }


def check_same_model(folder: Path, earlier: dict[str, Any], now: dict[str, Any]) -> None:
    """Check that two records of a model are of the same, measured alike.

    Raises:
        UserError: they are not.
    """
    for key in ("name", "identity", "dtype", "attn_implementation", "quantization"):
        if earlier.get(key) != now[key]:
            raise UserError(
                f"{folder} holds another model as {earlier['name']}: its {key} is "
                f"{earlier.get(key)}, this one's is {now[key]}; give another --out"
            )
    if earlier["shards"] != now["shards"]:
        raise UserError(
            f"{folder} holds {earlier['name']} measured by other code or options; "
            "give another --out"
        )


def check_same_run(folder: Path, earlier: dict[str, Any], now: dict[str, Any]) -> None:
    """Check that two origins are the same.

    Raises:
        UserError: they are not.
    """
    if earlier.get("code") != now["code"]:
        raise UserError(
            f"{folder} was measured by another version of interp, whose numbers may differ; "
            "give another --out"
        )
    for key, value in now.items():
        if earlier.get(key) != value:
            raise UserError(
                f"{folder} belongs to a different run: its {key} is {earlier.get(key)!r}, this "
                f"run's is {value!r}; repeat that run's options, or give another --out"
            )
