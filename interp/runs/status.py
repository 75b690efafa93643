"""How far a run is: prompts done and failed by model, who is at work, rate and time left."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from interp.runs.folder import RunFolder
from interp.runs.shards import manifests

_COLUMNS = ["run", "model", "prompts", "done", "failed", "running", "rate", "seconds_left"]


def status_table(runs: Mapping[str, RunFolder]) -> pd.DataFrame:
    """One row per run and model.

    `prompts` are all, `done` those on disk, `failed` those of them with an error (of pairs, where
    pairs are measured). `running` counts the shards that a living worker has claimed; `rate`
    (prompts per second) is that of one worker on the shards that are done, times those at work;
    `seconds_left` is the estimated time for the remaining prompts. Both are NaN while nobody is at
    work or no shard has finished.

    Args:
        runs: by the name that the table calls them.
    """
    rows = [
        {"run": name, "model": model, **_status(run, model)}
        for name, run in runs.items()
        for model in run.record.models
    ]
    return pd.DataFrame(rows, columns=_COLUMNS)


def _status(run: RunFolder, model: str) -> dict[str, Any]:
    found = list(manifests(run.done(model)))
    total, done = run.record.run.prompts, sum(manifest.prompts for manifest in found)
    running = len(run.claims(model).holders())
    seconds = sum(manifest.seconds for manifest in found)
    rate = running * done / seconds if running and seconds else float("nan")
    return {
        "prompts": total,
        "done": done,
        "failed": sum(manifest.errors for manifest in found),
        "running": running,
        "rate": rate,
        "seconds_left": (total - done) / rate if rate else float("nan"),
    }
