"""How far a run is: prompts done and failed by model, who is at work, rate and time left."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from interp.runs.folder import RunFolder
from interp.runs.shards import read_manifest


def status_table(runs: Mapping[str, RunFolder]) -> pd.DataFrame:
    """One row a run and model.

    `prompts` are all, `done` those on disk, `failed` those of them with an error (of pairs, where
    pairs are measured). `running` counts the shards that a living worker has claimed; `rate`
    (prompts a second) is that of one worker on the shards that are done, times those at work;
    `seconds_left` is what that rate makes of the rest. Both are NaN while nobody is at work, or
    nothing tells yet.

    Args:
        runs: by the name that the table calls them.
    """
    rows = [
        {"run": name, "model": model, **_status(run, model)}
        for name, run in runs.items()
        for model in run.record["models"]
    ]
    return pd.DataFrame(rows)


def _status(run: RunFolder, model: str) -> dict[str, Any]:
    shards = run.shards(model)
    manifests = [found for shard in shards if (found := read_manifest(shard)) is not None]
    total, done = run.record["run"]["prompts"], sum(found["prompts"] for found in manifests)
    running = len(run.claims(model).holders())
    seconds = sum(found["seconds"] for found in manifests)
    rate = running * done / seconds if running and seconds else float("nan")
    return {
        "prompts": total,
        "done": done,
        "failed": sum(found["errors"] for found in manifests),
        "running": running,
        "rate": rate,
        "seconds_left": (total - done) / rate,
    }
