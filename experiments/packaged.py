"""Tables that are packaged with a system, in its data/ folder."""

import csv
import unicodedata
from importlib.resources import files


def packaged_rows(package: str, file: str) -> list[dict[str, str]]:
    """The rows of a package's CSV file as mappings from column names, in composed Unicode (NFC)."""
    text = (files(package) / "data" / file).read_text(encoding="utf-8")
    return list(csv.DictReader(unicodedata.normalize("NFC", text).splitlines()))
