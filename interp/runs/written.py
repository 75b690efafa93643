"""Pages, figures and workers' records in the folder of a run or study: whether they are unchanged.

Shards have manifests, and tables are listed with their checksums in run.json. Pages and figures are
listed in the record of the folder after they have been written, so a killed command leaves files
that are not on record, or files with other checksums; `interp report` or the command writes them
again. Records contain their own checksum (`interp.runs.records`).
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from interp.errors import UserError
from interp.files import checksum, inside, names_in
from interp.runs import records

PAGES = {
    "": r".*\.html",
    "tables": r".*\.(csv|tex)",
    "figures": r".*\.(svg|png)",
    "pairs": r"(index|[crsd][0-9]+)\.js",
}
"""Names of the files that a report writes, by folder."""

WORKERS = "workers"


def noted(folder: Path, record: records.FolderRecord, names: Iterable[str]) -> dict[str, str]:
    """The pages and figures on record after some were written; removed ones are forgotten."""
    listed = {name: inside(folder, *name.split("/")) for name in record.report}
    kept = {name: record.report[name] for name, file in listed.items() if file.exists()}
    return kept | {name: checksum(inside(folder, *name.split("/"))) for name in names}


def change_in(folder: Path, name: str, expected: str) -> str | None:
    """A line if a file is missing or does not have the expected checksum; otherwise None."""
    try:
        same = checksum(inside(folder, *name.split("/"))) == expected
        return None if same else f"{name} has changed since it was written"
    except FileNotFoundError:
        return f"{name} is missing"
    except UserError as error:
        return str(error)


def faults(folder: Path, record: records.FolderRecord) -> Iterator[str]:
    """A line about each page, figure or record that is missing, has changed or is not listed."""
    changes = (change_in(folder, name, expected) for name, expected in record.report.items())
    yield from filter(None, changes)
    if records.is_sealed(folder / record.FILE):
        for name in unlisted(folder, record):
            yield f"{name} is not on record; run interp report {folder}"
    for name in sorted({*record.workers, *worker_names(folder)}):
        yield from _problem_of(folder, f"{WORKERS}/{name}", records.WorkerRecord)
    if records.MEMORY in names_in(folder):
        yield from _problem_of(folder, records.MEMORY, records.Memory)


def _problem_of(folder: Path, name: str, kind: type[records.Record]) -> Iterator[str]:
    """A line if a record is missing or has changed."""
    try:
        if records.read_record(inside(folder, *name.split("/")), kind) is None:
            yield f"{name} is missing"
    except UserError as error:
        yield str(error)


def worker_names(folder: Path) -> list[str]:
    """The names of the workers' records in a folder."""
    names = names_in(inside(folder, WORKERS))
    return [name for name in names if re.fullmatch(r"[0-9a-f]{12}-[0-9]{1,9}\.json", name)]


def unlisted(folder: Path, record: records.FolderRecord) -> list[str]:
    """The pages, with their tables and figures, that are not on record."""
    pages = (
        f"{place}/{name}".removeprefix("/")
        for place, pattern in PAGES.items()
        for name in names_in(folder / place)
        if re.fullmatch(pattern, name) and not name.startswith(".")
    )
    return [name for name in pages if name not in record.report]


def unsealed(folder: Path, record: records.FolderRecord) -> list[str]:
    """The records that an earlier version wrote, without a checksum."""
    others = [f"{home}/{name}" for home in ("models", WORKERS) for name in names_in(folder / home)]
    return [name for name in (record.FILE, *others) if not records.is_sealed(folder / name)]
