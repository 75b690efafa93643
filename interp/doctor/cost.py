"""What a run would take: measured on a few prompts, carried over to many."""

import io
import time
from collections.abc import Iterator, Sequence

from interp.console import clock
from interp.doctor.finding import Finding, size
from interp.measurements.core import bind, collect
from interp.measurements.spec import Spec
from interp.measurements.specs import Attribute, Evaluate
from interp.models.model import Model
from interp.prompts.prompt import Prompt
from interp.runs.environment import peak_memory


def cost(model: Model, prompts: Sequence[Prompt], *, whole: int) -> Iterator[Finding]:
    """Time and disk of `whole` prompts, and the most memory that was held.

    Args:
        model: what is run.
        prompts: a few, which are measured.
        whole: how many a run would have.
    """
    for spec in (Evaluate(), Attribute()):
        seconds, stored = _measured(spec, model, prompts)
        yield Finding(
            f"{spec.name}, {whole:,} prompts",
            f"about {clock(seconds / len(prompts) * whole)} and "
            f"{size(stored / len(prompts) * whole)} on disk",
            f"{len(prompts) / seconds:.1f} prompts/s, measured on {len(prompts)}",
        )
    held = ", ".join(f"{size(peak)} ({device})" for device, peak in peak_memory().items())
    yield Finding("memory held at most", held)


def _measured(spec: Spec, model: Model, prompts: Sequence[Prompt]) -> tuple[float, int]:
    """Seconds, and bytes of the tables as Parquet."""
    measurement = bind(spec, model)
    collect(measurement, prompts[:2])  # what is slow only once, such as reading code of kernels
    start = time.perf_counter()
    tables = collect(measurement, prompts)
    seconds = time.perf_counter() - start
    stored = 0
    for table in tables.values():
        file = io.BytesIO()
        table.to_parquet(file, index=False)
        stored += file.tell()
    return seconds, stored
