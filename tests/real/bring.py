"""Joins the parts of a published model, of which nothing is imported or run.

`python -m tests.real.bring NAME DIR` joins the parts in the wheels of a folder, whose hashes pip
has compared with those in NAME.txt; `python -m tests.real.bring NAME` prints what `--model` takes,
if the file's hash is the recorded one.
"""

import hashlib
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from zipfile import BadZipFile, ZipFile

from interp.errors import UserError
from interp.files import write_whole
from interp.models.published import PUBLISHED, Published

_PART = re.compile(r".*[./]part(\d+)(?:\.bin)?|.*\.gguf")
"""Files of a wheel that hold a model or its parts, which are numbered over all wheels."""


def parts(folder: Path) -> Iterator[tuple[int, Path, str]]:
    """The number of each part, its wheel and its file in the wheel."""
    for wheel in folder.glob("*.whl"):
        with ZipFile(wheel) as content:
            for name in content.namelist():
                if found := _PART.fullmatch(name):
                    yield int(found[1] or 0), wheel, name


def join(model: Published, folder: Path) -> None:
    """Write a model's file from the wheels in a folder.

    Raises:
        UserError: the parts do not make the recorded file, of which nothing is then left.
    """

    def write(file: Path) -> None:
        with file.open("wb") as whole:
            for _, wheel, name in sorted(parts(folder)):
                with ZipFile(wheel) as content, content.open(name) as part:
                    shutil.copyfileobj(part, whole)
        check(model, file)

    model.path.parent.mkdir(parents=True, exist_ok=True)
    try:
        write_whole(model.path, write)
    except BadZipFile as error:
        raise UserError(f"a wheel in {folder} is damaged ({error}); remove it") from error


def check(model: Published, file: Path) -> None:
    """Compare a file's hash with the recorded one.

    Raises:
        UserError: they differ, or there is no file.
    """
    if not file.is_file():
        raise UserError(f"there is no {file}; make real MODEL=NAME brings it")
    with file.open("rb") as content:
        got = hashlib.file_digest(content, "sha256").hexdigest()
    if got != model.sha256:
        raise UserError(
            f"{file} is not {model.name}: its sha256 is {got}, expected {model.sha256}; remove it "
            "and make real brings it again"
        )


def main(name: str, folder: str = "") -> None:
    """Join a model's parts in a folder; without one, check and print NAME=FILE."""
    model = PUBLISHED[name]
    if folder:
        join(model, Path(folder))
    else:
        check(model, model.path)
        sys.stdout.write(f"{model.name}={model.path}\n")


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except UserError as error:
        sys.stderr.write(f"error: {error}\n")
        sys.exit(2)
