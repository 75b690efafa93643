"""Prompts as trials of steering: each with the effect of a change beside that of random ones."""

import pandas as pd

CELL = ["model", "side", "direction", "change", "dose", "role", "layer"]
"""Columns of an effect that is averaged over prompts; the layer is NaN for a band."""

_SOURCES = ("direction", "placebo", "third")


def steered_prompts(effects: pd.DataFrame, prompts: pd.DataFrame) -> pd.DataFrame:
    """One row per prompt and combination of `CELL`, with pair_id and the means over draws.

    Columns: effect, placebo and third, in logits; beyond: effect minus placebo; direction_turned,
    placebo_turned and third_turned: whether the preferred answer changes. What was not measured is
    NaN.
    """
    about = prompts[["prompt_id", "side", "pair_id"]]
    rows = effects.dropna(subset="effect").merge(about, on="prompt_id").astype({"turned": float})
    keys = [*CELL, "prompt_id", "pair_id", "source"]
    means = rows.groupby(keys, sort=False, dropna=False)[["effect", "turned"]].mean()
    wide = pd.DataFrame(means.unstack("source"))
    names = wide.columns.map(
        lambda name: name[1] if name[0] == "effect" else f"{name[1]}_{name[0]}"
    )
    known = [*_SOURCES, *(f"{source}_turned" for source in _SOURCES)]
    trials = wide.set_axis(names, axis=1).reindex(columns=known)
    trials["beyond"] = trials["direction"] - trials["placebo"]
    return trials.rename(columns={"direction": "effect"}).reset_index()
