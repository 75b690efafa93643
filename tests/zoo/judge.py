"""One row of the zoo's table: a member's marks and their reasons."""

import io
import time
import warnings
from contextlib import redirect_stderr, redirect_stdout

import torch

from tests.zoo.build import Built, build, kind_of
from tests.zoo.check import MEASUREMENTS, Check, Verdict
from tests.zoo.exceptions import NO_TEXT, PARTS

NOT_BUILT = "not built"
"""The kind of a member that cannot be built."""


def judge(name: str) -> dict[str, str]:
    """One member's row of the table, as text; never raises."""
    started = time.perf_counter()
    made, told = _made(name)
    notes = [*filter(None, [NO_TEXT.get(name) or PARTS.get(name)]), *told]
    verdicts: dict[str, Verdict] = {}
    if made is not None:
        silent = redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO())
        with silent[0], silent[1], warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                check = Check(made)
                notes += check.notes()
            except Exception as error:
                notes.append(_said(error))
            else:
                verdicts.update(check.verdicts())
    shared: dict[str, list[str]] = {}
    for measurement, verdict in verdicts.items():
        if verdict.reason:
            shared.setdefault(verdict.reason, []).append(measurement)
    reasons = [f"{', '.join(names)}: {reason}" for reason, names in shared.items()]
    kind = kind_of(name)
    return {
        "type": name,
        "kind": NOT_BUILT if made is None and kind != "not text" else kind,
        **{own: verdicts[own].mark if own in verdicts else "" for own in MEASUREMENTS},
        "seconds": f"{time.perf_counter() - started:.1f}",
        "reasons": " ".join("; ".join([*notes, *reasons]).split()),
    }


def _made(name: str) -> tuple[Built | None, list[str]]:
    """The model in float64, if it runs in it, else in float32; and what is to be known about it."""
    told: list[str] = []
    for dtype in (torch.float64, torch.float32):
        try:
            built = build(name, dtype=dtype)
            with torch.no_grad():
                built.hf(input_ids=torch.tensor([[1, 10, 20, 30]]), use_cache=False).logits[0, -1]
        except Exception as error:
            told = [_said(error)]
        else:
            return built, ["judged in float32"] if told else []
    return None, told


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error)[:200]}"
