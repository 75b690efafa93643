"""The records of run folders, each with a schema; a file that violates its schema is rejected.

Names and ids in records become file names, so they must match the patterns of the names that this
program creates. The last field of a file is the checksum of everything before it, so any changed
byte is noticed, while records are still written whole and independently of other files; records of
earlier versions have no checksum.
"""

import hashlib
import os
import platform
import re
import resource
import sys
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, ClassVar, Final, Literal, TypeVar

import pyarrow as pa
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    StringConstraints,
    ValidationError,
)
from pydantic_core import from_json

from interp.errors import UserError, fault_of
from interp.files import RECORD_BYTES, read_bytes, write_whole


def _all_different(ids: list[str]) -> list[str]:
    if len(set(ids)) < len(ids):
        raise ValueError("expected unique ids")
    return ids


SHARD_ID = r"^[0-9a-f]{32}$"
"""Names of shards and of the claims on them."""
ShardId = Annotated[str, StringConstraints(pattern=SHARD_ID)]
CallId = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{12}$")]
Hash = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
TableName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,60}$")]
TableFile = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,60}\.(parquet|csv)$")]
RESULT_FILE = r"^[a-z][a-z0-9_]{0,60}(\.(parquet|csv|tex)|-[A-Za-z0-9._-]{1,100}\.safetensors)$"
"""Names of tables, and of files with one model's tensors."""
ResultFile = Annotated[str, StringConstraints(pattern=RESULT_FILE)]
StageName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,60}$")]
ModelName = Annotated[str, StringConstraints(min_length=1, max_length=4096)]
WorkerName = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{12}-[0-9]{1,9}\.json$")]
PageFile = Annotated[str, StringConstraints(pattern=r"^[^\x00]{1,4096}$")]
"""Path, within the folder, of a page or of a file next to it; read only through `files.inside`."""
Text = Annotated[str, StringConstraints(max_length=100_000)]
Count = Annotated[int, Field(ge=0, le=2**53)]


FORMAT: Final = 2
"""Version of the run folder format; the first version of the format did not record it."""


class Record(BaseModel):
    """A JSON file in a run folder, with exactly these fields."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


_Record = TypeVar("_Record", bound=Record)


class Call(Record):
    """A call of a command that found something to do."""

    id: CallId
    command: Text | None
    """The command line; None for a call from Python."""
    models: list[ModelName]
    started: Text
    finished: Text | None = None
    """Time when the call wrote its tables; None if the call is still running or never finished."""
    versions: dict[str, Text]
    peak_memory_bytes: dict[str, Count] = {}
    """The largest peak memory among the call's workers, by device."""


class DecisiveRecord(Record):
    """How prompts name their deciding segments (`interp.prompts.prompt_set.Decisive`)."""

    factor: Text
    among: Annotated[list[Text], Field(min_length=1)]


class RunIdentity(Record):
    """Everything that a run's numbers depend on, apart from the models."""

    measurement: Text
    parameters: dict[str, JsonValue]
    system: Text
    seed: int
    prompts: Count
    data: dict[str, Text]
    ratio: tuple[Text, Text] | None = None
    """The two segments whose scores are compared."""
    decisive: DecisiveRecord | None = None
    data_hash: Hash
    code: Hash


class FolderRecord(Record):
    """The record whose presence makes a folder a run or a study."""

    FILE: ClassVar[str]

    format: Literal[2] = FORMAT
    report: dict[PageFile, Hash] = {}
    """The pages with their tables, and the figures, with checksums."""
    workers: list[WorkerName] = []
    """The workers' records that were there when the folder was last finished."""


class RunRecord(FolderRecord):
    """run.json."""

    FILE = "run.json"

    run: RunIdentity
    models: list[ModelName]
    """Names of the models, in the order of the tables."""
    history: list[Call]
    finished: Text | None = None
    """Time when the tables were last merged."""
    merged: dict[ModelName, Hash] = {}
    """The models in the tables, each with a hash of its shards."""
    summary: dict[str, JsonValue] = {}
    """Remarks about each model that the tables do not show."""
    unmerged: list[TableName] = []
    """Tables that exist only in the shards."""
    files: dict[ResultFile, Hash]
    """The prompts, the merged tables and the files derived from them, with checksums."""


class StudyRecord(FolderRecord):
    """study.json."""

    FILE = "study.json"

    study: StageName
    options: dict[str, JsonValue]
    stages: list[StageName]
    models: list[ModelName]
    history: list[Call]
    finished: Text | None = None


class TextsRecord(Record):
    """Texts that another tool stored, and how they fit the prompts."""

    file: Text
    """Names of the files."""
    texts: Count
    draws: Count
    """The largest number of texts on one prompt."""
    problems: list[Text] = []
    """What did not fit, with numbers and examples."""


class SurpriseRecord(Record):
    """How much less probable stored thoughts are than a model's own (`scoring.own_thoughts`)."""

    mean: Annotated[float, Field(allow_inf_nan=False)]
    """Surprisal minus entropy, in nats per token."""
    se: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    """The standard error of this number for the model's own thoughts."""
    thoughts: Count
    tokens: Count


class RepliesRecord(Record):
    """How many of a model's replies begin with none of the options (`scoring.replies`)."""

    read: Annotated[int, Field(ge=1, le=2**53)]
    outside: Count
    token: Text
    """The token with which most of these begin."""
    templated: bool = True
    asked: Count = 0
    """Number of prompts that were asked in other ways."""
    given: dict[Text, Count] = {}
    """How many of these replies give an option, by flag."""


class ModelRecord(Record):
    """models/NAME.json."""

    name: ModelName
    source: dict[str, Text]
    """The source of the model: kind, name, revision and commit."""
    identity: Text
    architecture: Text
    parameters: Count
    vocabulary: Count
    dtype: Text
    quantization: Text | None
    device: Text
    attn_implementation: Text
    chat: dict[str, JsonValue]
    """Settings for writing messages to the model, and the text that its template adds around them.
    """
    own_system_prompt: Text = ""
    """The system prompt that the template writes although none was asked for."""
    logit_spacing: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    """Distance between neighboring numbers of a coarse type at the size of the model's logits."""
    attention_layers: list[Count] = []
    """The layers that have attention, if others have none."""
    reads_tokens_again: bool = False
    """Whether later layers also read the tokens, beside the input embeddings."""
    texts: TextsRecord | None = None
    """The stored texts that were judged, or that are read as the model's thoughts, if any."""
    surprise: SurpriseRecord | None = None
    """Whether these thoughts are the model's own, as its probabilities tell."""
    replies: RepliesRecord | None = None
    """What it replies to a few prompts that offer options."""
    tables: dict[TableName, dict[str, Text]]
    """Columns and their types."""
    origin: dict[str, JsonValue]
    """The source and loading options of the model, which let later calls recognize it."""
    data_hash: Hash
    shards: Annotated[list[ShardId], Field(min_length=1), AfterValidator(_all_different)]
    shard_prompts: Annotated[int, Field(ge=1)] | None = None
    """Number of prompts of a shard when the model was begun, which later calls keep; None in
    records of older versions.
    """


class ShardManifest(Record):
    """shards/NAME/ID/manifest.json."""

    id: ShardId
    prompts: Count
    units: Count
    """Number of prompts, or of pairs if pairs are measured."""
    errors: Count
    example: str | None
    """One of the error messages; None if there are no errors."""
    seconds: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    files: dict[TableFile, Hash]


class ClaimOwner(Record):
    """claims/NAME/ID."""

    space: Text
    """The space within which `process` identifies a process (`interp.files.process_space`)."""
    process: Annotated[int, Field(ge=0, lt=2**31)]
    worker: Text


class WorkerRecord(Record):
    """workers/CALL-NUMBER.json."""

    call: CallId
    number: Count
    host: Text
    process: Count
    job: Text | None
    ranks: Annotated[int, Field(ge=1)] = 1
    """Number of processes that hold each model together; the others belong to this one."""
    threads: Count
    started: Text
    finished: Text | None = None
    error: str | None = None
    peak_memory_bytes: dict[str, Count] = {}


MEMORY = "memory.json"


class Memory(Record):
    """memory.json: the batch size in tokens that fits into memory, by model and kind of device."""

    tokens: dict[str, Annotated[int, Field(gt=0)]]


def read_record(file: Path, kind: type[_Record]) -> _Record | None:
    """A record; None if there is no such file.

    Raises:
        UserError: the file is not such a record, or has changed since it was written; the message
            names the file and the wrong field.
    """
    try:
        content = read_bytes(file, limit=RECORD_BYTES)
    except FileNotFoundError:
        return None
    try:
        return kind.model_validate_json(_opened(content))
    except ValidationError as error:
        if issubclass(kind, FolderRecord) and _format_of(content) != FORMAT:
            raise UserError(
                f"{file} was written by an earlier or later version of interp, whose folders "
                "this version cannot read. Use another --out"
            ) from error
        changed = error.errors(include_url=False)[0]["loc"] == ("sha256",)
        reason = "it has changed since it was written" if changed else fault_of(error)
        raise UserError(
            f"{file} is damaged, or was written by another version of interp: {reason}. "
            "Use another --out, or restore the file"
        ) from error


def _format_of(content: bytes) -> object:
    """The recorded format; 1 if none is stated, and the current format if there is no record."""
    try:
        record = from_json(content)
    except ValueError:
        return FORMAT
    return record.get("format", 1) if isinstance(record, dict) else FORMAT


_SEAL = re.compile(rb',\n  "sha256": "([0-9a-f]{64})"\n}\n\Z')
"""The end of a record with a checksum. If anything has changed, sha256 is a field too many."""


def sealed(text: str) -> str:
    """The text of a record, which ends with a closing brace on its own line, and its checksum."""
    seal = hashlib.sha256(text.encode("utf-8")).hexdigest()
    return text.removesuffix("\n}\n") + f',\n  "sha256": "{seal}"\n}}\n'


def is_sealed(file: Path) -> bool:
    """Whether an existing record has a checksum, which records of earlier versions lack."""
    return _SEAL.search(read_bytes(file, limit=RECORD_BYTES)) is not None


def write_record(file: Path, record: Record) -> None:
    """Write a record and its checksum atomically."""
    text = sealed(record.model_dump_json(indent=2) + "\n")
    write_whole(file, lambda path: path.write_text(text, encoding="utf-8"))


def updated(record: _Record, changes: Mapping[str, object]) -> _Record:
    """A copy of a record with some fields changed, validated against the record's schema."""
    return type(record).model_validate({**dict(record), **changes})


def _opened(content: bytes) -> bytes:
    """The text of a record without its checksum, if it has one and is unchanged."""
    seal = _SEAL.search(content)
    if not seal:
        return content
    text = content[: seal.start()] + b"\n}\n"
    unchanged = hashlib.sha256(text).hexdigest().encode() == seal[1]
    return text if unchanged else content


_PACKAGES = ("interp", "torch", "transformers", "tokenizers", "numpy", "pyarrow", "inseq", "peft")


def column_types(schema: pa.Schema) -> dict[str, str]:
    """The names and types of a table's columns, in the form that records use."""
    return {column.name: _type_name(column.type) for column in schema}


def _type_name(type_: pa.DataType) -> str:
    # The name of a list's elements changes when a file is written and read again.
    if pa.types.is_list(type_):
        return f"list<{_type_name(type_.value_type)}>"
    return str(type_)


def now() -> str:
    """The current time, for records."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def versions() -> dict[str, str]:
    """Versions of Python and of the packages on which numbers may depend."""
    installed = {"python": platform.python_version()}
    for package in _PACKAGES:
        with suppress(PackageNotFoundError):
            installed[package] = version(package)
    return installed


def cluster_job() -> str | None:
    """The id of the SLURM job that runs this process, as in SLURM's commands."""
    array, task = (os.environ.get(f"SLURM_ARRAY_{name}_ID") for name in ("JOB", "TASK"))
    return f"{array}_{task}" if array and task else os.environ.get("SLURM_JOB_ID")


def peak_memory() -> dict[str, int]:
    """The peak memory of this process so far, in bytes, by device."""
    # Linux counts in KiB, macOS in bytes.
    unit = 1 if platform.system() == "Darwin" else 1024
    peak = {"cpu": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit}
    torch = sys.modules.get("torch")
    if torch is not None:  # a process that has not imported torch uses no GPU memory
        for index in range(torch.cuda.device_count()):
            peak[f"cuda:{index}"] = torch.cuda.max_memory_allocated(index)
    return peak
