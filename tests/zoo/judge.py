"""One row of the zoo's table: a member's marks and their reasons."""

import contextlib
import io
import time
import warnings
from dataclasses import dataclass, field

import torch

from tests.zoo.build import Built, build, kind_of
from tests.zoo.check import MEASUREMENTS, Check, Verdict
from tests.zoo.exceptions import NO_TEXT, PARTS

NOT_BUILT = "not built"
"""The kind of a member that cannot be built."""


@dataclass(slots=True)
class Judged:
    """A row of the zoo's table."""

    type: str
    kind: str
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def row(self) -> dict[str, str]:
        """The row as text."""
        shared: dict[str, list[str]] = {}
        for name, verdict in self.verdicts.items():
            if verdict.reason:
                shared.setdefault(verdict.reason, []).append(name)
        reasons = [f"{', '.join(names)}: {reason}" for reason, names in shared.items()]
        marks = {
            name: self.verdicts[name].mark if name in self.verdicts else "" for name in MEASUREMENTS
        }
        told = "; ".join([*self.notes, *reasons])
        return {
            "type": self.type,
            "kind": self.kind,
            **marks,
            "seconds": f"{self.seconds:.1f}",
            "reasons": " ".join(told.split()),
        }


def judge(name: str) -> Judged:
    """One member's row of the table; never raises."""
    started = time.perf_counter()
    made, notes = _made(name)
    kind: str = kind_of(name)
    if made is None and kind != "not text":
        kind = NOT_BUILT
    about = NO_TEXT.get(name) or PARTS.get(name)
    judged = Judged(name, kind, notes=[*filter(None, [about]), *notes])
    if made is not None:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            _judge(made, judged)
    judged.seconds = time.perf_counter() - started
    return judged


def _judge(made: Built, judged: Judged) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            check = Check(made)
            judged.notes += check.notes()
        except Exception as error:
            judged.notes.append(f"{type(error).__name__}: {str(error)[:200]}")
            return
        judged.verdicts.update(check.verdicts())


def _made(name: str) -> tuple[Built | None, list[str]]:
    """The model in float64, if it runs in it, else in float32; and what is to be known about it."""
    notes = []
    for dtype in (torch.float64, torch.float32):
        try:
            built = build(name, dtype=dtype)
            with torch.no_grad():
                built.hf(input_ids=torch.tensor([[1, 10, 20, 30]]), use_cache=False).logits[0, -1]
        except Exception as error:
            told = f"{type(error).__name__}: {str(error)[:200]}"
            if dtype == torch.float32:
                return None, [told]
            notes = ["judged in float32"]
            continue
        return built, notes
    return None, notes
