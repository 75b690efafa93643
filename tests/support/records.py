"""Records on disk, changed by hand and with the checksum of the changed text."""

import json

from interp.runs.records import sealed


def edited(file, change):
    """Change a record, by a function that changes it as a dictionary."""
    record = json.loads(file.read_text())
    change(record)
    file.write_text(resigned(json.dumps(record)))


def resigned(text):
    """A JSON text with the checksum that makes it a record; other texts stay as they are."""
    record = json.loads(text)
    if not isinstance(record, dict) or not record.keys() - {"sha256"}:
        return text
    record.pop("sha256", None)
    return sealed(json.dumps(record, indent=2) + "\n")
