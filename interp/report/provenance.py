"""Where a report's numbers come from, for its head: when, by which version, by which command."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_BIBTEX = """\
@software{{interp,
  title = {{interp: attribution and mechanistic interpretability on reasoning prompts in pairs}},
  author = {{{{The interp developers}}}},
  version = {{{version}}},
  year = {{{year}}}
}}"""


@dataclass(frozen=True)
class Provenance:
    """What the record of a run or study says of all of its calls."""

    measured: str
    """The day, or the first and the last one, in UTC."""
    versions: tuple[str, ...]
    """Of interp."""
    commands: tuple[str, ...]
    """Command lines, without repetition; none for calls from Python."""

    @property
    def bibtex(self) -> str:
        """The entry by which interp is cited: its last version, and the year of measuring."""
        return _BIBTEX.format(version=self.versions[-1], year=self.measured[-10:-6])


def provenance(record: Mapping[str, Any]) -> Provenance | None:
    """The provenance of what a record is about; None where it names no call.

    Args:
        record: run.json or study.json.
    """
    calls = record.get("history", [])
    if not calls:
        return None
    days = sorted(
        time[:10] for call in calls for time in (call["started"], call["finished"]) if time
    )
    return Provenance(
        " to ".join(dict.fromkeys((days[0], days[-1]))),
        tuple(dict.fromkeys(call["versions"].get("interp", "unknown") for call in calls)),
        tuple(dict.fromkeys(call["command"] for call in calls if call["command"])),
    )
