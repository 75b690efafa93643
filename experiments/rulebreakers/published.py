"""Read data in the published columns: a local file or folder, or a data set on the hub."""

from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd
from huggingface_hub import snapshot_download
from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

from interp.errors import UserError
from interp_experiments.rulebreakers.instances import COLUMNS, Instance

_READERS = {
    ".csv": lambda path: pd.read_csv(path, dtype=str, keep_default_na=False),
    ".json": lambda path: pd.read_json(path, dtype=False),
    ".jsonl": lambda path: pd.read_json(path, dtype=False, lines=True),
    ".parquet": pd.read_parquet,
}

_RULE_NAMES = {"mt": "mt", "modus tollens": "mt", "ds": "ds", "disjunctive syllogism": "ds"}

_TRUTH = {"true": True, "1": True, "false": False, "0": False}

_LABEL_OF_SUFFIX = {"rb": False, "nonrb": True}


def load_published(source: str) -> list[Instance]:
    """Instances from a file, a folder of files, or a hub data set such as jason-c/rulebreakers.

    Raises:
        UserError: nothing readable there, missing columns, empty or contradictory fields,
            duplicate ids, or an instance without its counterpart.
    """
    path = Path(source)
    if not path.exists():
        path = _download(source)
    files = [path] if path.is_file() else _data_files(path)
    instances = [instance for file in files for instance in _read(file)]
    _check_pairs(source, instances)
    return instances


def _download(name: str) -> Path:
    if name.count("/") != 1 or Path(name).suffix in _READERS:
        raise UserError(
            f"no data at {name!r}; expected a CSV, JSON, JSONL or Parquet file, a folder of such "
            "files, or the name of a data set on the hub (owner/name)"
        )
    try:
        return Path(
            snapshot_download(
                name, repo_type="dataset", allow_patterns=[f"*{suffix}" for suffix in _READERS]
            )
        )
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OSError) as error:
        raise UserError(
            f"the data set {name!r} is neither a local path nor to be had from the hub "
            f"({' '.join(str(error).split())[:200]}); download it and give its path"
        ) from error


def _data_files(folder: Path) -> list[Path]:
    files = sorted(
        path
        for path in folder.rglob("*")
        if path.suffix in _READERS and not path.name.startswith((".", "dataset_info"))
    )
    if not files:
        raise UserError(f"{folder} holds no data file; expected {', '.join(_READERS)}")
    return files


def _read(file: Path) -> list[Instance]:
    if file.suffix not in _READERS:
        raise UserError(f"cannot read {file}; expected a file that ends in {', '.join(_READERS)}")
    try:
        frame = _READERS[file.suffix](file)
    except (ValueError, OSError, pd.errors.ParserError) as error:
        raise UserError(f"cannot read {file}: {error}") from error
    missing = [column for column in COLUMNS if column not in frame.columns]
    if missing:
        raise UserError(
            f"{file} lacks the columns {', '.join(missing)}; it has {', '.join(frame.columns)}, "
            f"expected {', '.join(COLUMNS)}"
        )
    return [_instance(file, row) for row in frame[list(COLUMNS)].to_dict("records")]


def _instance(file: Path, row: dict[str, Any]) -> Instance:
    where = f"{file}, row {row['id']!r}"
    for column, value in row.items():
        if pd.isna(value) or not str(value).strip():
            raise UserError(f"{where}: the column {column} is empty; every field must be filled")
    fields = {field: str(row[column]) for column, field in COLUMNS.items() if column != "label"}
    label = str(row["label"]).strip().lower()
    suffix = fields["id"].rpartition("_")[2]
    for column, got, known in (
        ("label", label, _TRUTH),
        ("id (its ending)", suffix, _LABEL_OF_SUFFIX),
    ):
        if got not in known:
            raise UserError(f"{where}: {column} is {got!r}; expected one of {', '.join(known)}")
    if _TRUTH[label] != _LABEL_OF_SUFFIX[suffix]:
        raise UserError(
            f"{where}: the id says {suffix}, whose label is {_LABEL_OF_SUFFIX[suffix]}, "
            f"but the label is {_TRUTH[label]}"
        )
    return Instance(**{**fields, "rule": _rule(where, fields)}, label=_TRUTH[label])


def _rule(where: str, fields: dict[str, str]) -> str:
    """The rule by its name, or by the form of the first premise where it is named otherwise."""
    name = fields["rule"].strip().lower().replace("_", " ")
    if name in _RULE_NAMES:
        return _RULE_NAMES[name]
    if fields["premise1"].startswith("If "):
        return "mt"
    if " either " in fields["premise1"]:
        return "ds"
    raise UserError(
        f"{where}: rulebreaker_type is {fields['rule']!r} and premise1 neither begins with 'If' "
        f"nor holds 'either'; expected one of {', '.join(_RULE_NAMES)}"
    )


def _check_pairs(source: str, instances: list[Instance]) -> None:
    repeated = [id_ for id_, count in Counter(i.id for i in instances).items() if count > 1]
    if repeated:
        raise UserError(f"{source}: the id {repeated[0]!r} occurs twice; ids must be unique")
    sides = Counter(instance.pair_id for instance in instances)
    single = [instance.id for instance in instances if sides[instance.pair_id] != 2]
    if single:
        raise UserError(
            f"{source}: {single[0]!r} has no counterpart; every rulebreaker ID_rb needs a "
            f"non-rulebreaker ID_nonrb ({len(single)} rows stand alone)"
        )
