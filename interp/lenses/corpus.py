"""The texts on which lenses are fitted: plain sentences that come with interp, or the user's own.

The sentences name no country, city, animal family or other fact that studies ask about.
"""

import hashlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from interp.errors import UserError
from interp.files import RECORD_BYTES, read_bytes


@cache
def sentences() -> tuple[str, ...]:
    """The sentences that come with interp."""
    return read_corpus(Path(__file__).with_name("sentences.txt"))


def read_corpus(file: Path) -> tuple[str, ...]:
    """The non-empty lines of a UTF-8 file; a UserError if it has none, or is another file."""
    try:
        lines = read_bytes(file, limit=RECORD_BYTES).decode("utf-8").splitlines()
    except FileNotFoundError:
        raise UserError(
            f"there is no file {file}; expected a file with one text per line"
        ) from None
    except UnicodeDecodeError as error:
        raise UserError(f"{file} is not UTF-8 ({error.reason}); save it as UTF-8") from error
    texts = tuple(line.strip() for line in lines if line.strip())
    if not texts:
        raise UserError(f"{file} has no text; expected one text per line")
    return texts


def corpus_hash(texts: Sequence[str]) -> str:
    """A hash of the texts, in their order."""
    digest = hashlib.sha256()
    for text in texts:
        digest.update(hashlib.sha256(text.encode("utf-8")).digest())
    return digest.hexdigest()
