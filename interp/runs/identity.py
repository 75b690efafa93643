"""What the numbers of a run depend on, and whether a folder holds that very run and model."""

import re
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from interp.errors import UserError, shortened
from interp.measurements.core import Measurement
from interp.measurements.spec import Spec
from interp.options import flag
from interp.prompts.prompt_set import PromptSet
from interp.runs.code import code_version
from interp.runs.records import ModelRecord, RunIdentity
from interp.runs.shards import column_types

_SELECTION = ("pairs", "spread_seed")
"""What the description of prompts says where a limit chose them."""


def run_identity(prompts: PromptSet, spec: Spec) -> RunIdentity:
    """What a run is, as its record holds it."""
    known = prompts.decisive
    return RunIdentity.model_validate(
        {
            "measurement": spec.name,
            "parameters": spec.identity(),
            "system": prompts.system,
            "seed": prompts.seed,
            "prompts": len(prompts),
            "data": prompts.description,
            "ratio": None if prompts.ratio is None else list(prompts.ratio),
            "decisive": None if known is None else {**known._asdict(), "among": [*known.among]},
            "data_hash": prompts.content_hash(),
            "code": code_version((*spec.modules(), *sorted(prompts.parser_modules()))),
        }
    )


def model_record(
    measurement: Measurement,
    *,
    origin: Mapping[str, object],
    data_hash: str,
    shards: list[str],
) -> ModelRecord:
    """What a run keeps of a model, and of the tables that it fills."""
    model = measurement.model
    return ModelRecord.model_validate(
        {
            "name": model.name,
            "source": model.source,
            "identity": model.identity,
            "architecture": model.hf.config.model_type,
            "parameters": model.hf.num_parameters(),
            "vocabulary": model.hf.config.get_text_config().vocab_size,
            "dtype": model.dtype,
            "quantization": model.quantization,
            "device": str(model.device),
            "attn_implementation": model.attn_implementation,
            "chat": {**asdict(model.chat), **asdict(model.chat_frame)},
            "tables": {name: column_types(schema) for name, schema in measurement.tables.items()},
            "origin": dict(origin),
            "data_hash": data_hash,
            "shards": shards,
        }
    )


def check_same_model(folder: Path, earlier: ModelRecord, now: ModelRecord) -> None:
    """Check that two records of a model are of the same, measured alike.

    Raises:
        UserError: they are not.
    """
    for key in ("name", "identity", "dtype", "attn_implementation", "quantization"):
        before, after = getattr(earlier, key), getattr(now, key)
        if before != after:
            raise UserError(
                f"{folder} holds another model as {earlier.name}: its {key} is "
                f"{before}, this one's is {after}; give another --out"
            )
    if earlier.data_hash == now.data_hash and earlier.shards != now.shards:
        raise UserError(
            f"{folder} holds {earlier.name} measured by other code or options; give another --out"
        )


def check_same_run(folder: Path, earlier: RunIdentity, now: RunIdentity) -> bool:
    """Check that a run is the one that a folder holds, or that one with a larger limit.

    Returns:
        Whether it has a larger limit.

    Raises:
        UserError: it is another run, or that one with a smaller limit.
    """
    if earlier.measurement == now.measurement:
        _check_parameters(folder, earlier, now)
        if earlier.code != now.code:
            raise UserError(
                f"{folder} was measured by another version of interp, whose numbers may differ; "
                "give another --out"
            )
    before, limit = _limit(earlier), _limit(now)
    if _without_selection(earlier) == _without_selection(now) and before != limit:
        if limit < before:
            raise UserError(
                f"{folder} holds {earlier.prompts:,} prompts, this run would have {now.prompts:,}; "
                "a run can grow but not shrink: give a larger --limit, or another --out"
            )
        return True
    for key in ("measurement", "system", "seed", "prompts"):
        there, here = getattr(earlier, key), getattr(now, key)
        if there != here:
            raise UserError(
                f"{folder} belongs to a different run: its {key} is {shortened(repr(there))}, "
                f"this run's is {shortened(repr(here))}; repeat that run's options, or give "
                "another --out"
            )
    if earlier.data_hash != now.data_hash:
        raise UserError(
            f"{folder} belongs to a different run: the content of the data has changed since, or "
            "it is other data. Repeat that run's data and options, or give another --out"
        )
    return False


def _check_parameters(folder: Path, earlier: RunIdentity, now: RunIdentity) -> None:
    for name in dict.fromkeys([*earlier.parameters, *now.parameters]):
        if earlier.parameters.get(name) != now.parameters.get(name):
            raise UserError(
                f"{folder} belongs to a different run: it was run "
                f"{_option(name, earlier.parameters)}, this one {_option(name, now.parameters)}; "
                "repeat that run's options, or give another --out"
            )


def _option(name: str, parameters: Mapping[str, object]) -> str:
    """How a command line gives a parameter, such as "with --target gold"."""
    value = parameters.get(name)
    if value in (None, False):
        return f"without {flag(name)}"
    values = [] if value is True else value if isinstance(value, list) else [value]
    return " ".join(["with", flag(name), *(shortened(str(one)) for one in values)])


def _without_selection(run: RunIdentity) -> tuple[object, ...]:
    data = {key: value for key, value in run.data.items() if key not in _SELECTION}
    seed = run.data.get("spread_seed", str(run.seed))
    return run.measurement, run.system, run.seed, seed, data


def _limit(run: RunIdentity) -> float:
    """The pairs that were chosen; infinite where all were."""
    pairs = run.data.get("pairs", "")
    return float(pairs) if re.fullmatch("[0-9]{1,15}", pairs) else float("inf")
