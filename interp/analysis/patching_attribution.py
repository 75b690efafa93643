"""Whether the premise with the higher attribution score also has the larger patching effect."""

from dataclasses import asdict

import numpy as np
import pandas as pd

from interp.analysis.groups import grouped
from interp.analysis.patching_effects import Parts, in_parts
from interp.analysis.spearman import spearman
from interp.choices import COUNTERPART


def premise_effects(patches: Parts, pairs: pd.DataFrame, ratios: pd.DataFrame) -> pd.DataFrame:
    """One row a model, pair, direction, site and attribution method.

    Columns: score_ratio, premise 2 over premise 1 as attributed in the prompt that was run (the
    corrupt one in denoising); premise1_effect and premise2_effect, the largest absolute effect in
    logits of patching that premise, over layers and heads (and over its parts, where roles were
    patched); effect_ratio, premise 2 over premise 1. A ratio without a denominator is missing.
    `patches` are those of one method, of every cell, of which those from controls do not count;
    `ratios` are those of premise 2 over premise 1
    (`interp.analysis.segments.segment_ratios`).
    """
    sizes = pd.concat([_premise_sizes(part) for part in in_parts(patches)]).unstack("premise")
    effects = pd.DataFrame(
        {f"premise{number}_effect": sizes.get(f"premise{number}") for number in (1, 2)},
        index=sizes.index,
    ).astype(float)
    first = effects["premise1_effect"]
    effects["effect_ratio"] = effects["premise2_effect"] / first.where(first > 0)
    run = pairs["corrupt_prompt_id"].where(
        pairs["direction"] == "denoising", pairs["clean_prompt_id"]
    )
    keys = pairs[["model", "pair_id", "direction"]].assign(prompt_id=run)
    scores = ratios[["model", "prompt_id", "method", "ratio"]]
    return (
        effects.reset_index()
        .merge(keys, on=["model", "pair_id", "direction"])
        .merge(scores.rename(columns={"ratio": "score_ratio"}), on=["model", "prompt_id"])
    )


def _premise_sizes(patches: pd.DataFrame) -> pd.Series:
    """The largest absolute effect of each premise of each pair, direction and site."""
    patches = patches[patches["source"] == COUNTERPART]
    premises = patches["role"].astype(str).str.extract(r"^(premise[12])")[0]
    parts = patches.assign(premise=premises, size=patches["effect"].abs())[premises.notna()]
    key = ["model", "pair_id", "direction", "site", "premise"]
    return parts.groupby(key, sort=False)["size"].max()


def agreement_table(effects: pd.DataFrame) -> pd.DataFrame:
    """One row per model, direction, site and attribution method, from `premise_effects`.

    Columns: score_premise2 and effect_premise2, the shares of pairs in which premise 2 has the
    higher score and the larger effect; agree, the share in which both point to the same premise;
    by_chance, the share that would agree if the two had nothing to do with each other; rho, low,
    high, p, n, note: rank correlation of the two ratios. Pairs without either ratio are left out.
    """
    rows = []
    for cell, members in grouped(effects, ["model", "direction", "site", "method"]):
        defined = members.dropna(subset=["score_ratio", "effect_ratio"])
        score, effect = (defined[name] > 1 for name in ("score_ratio", "effect_ratio"))
        chance = score.mean() * effect.mean() + (1 - score.mean()) * (1 - effect.mean())
        rank = asdict(spearman(defined["score_ratio"], defined["effect_ratio"]))
        del rank["method"]
        rows.append(
            {
                **cell,
                "score_premise2": score.mean(),
                "effect_premise2": effect.mean(),
                "agree": (score == effect).mean() if len(defined) else np.nan,
                "by_chance": chance,
                **rank,
            }
        )
    return pd.DataFrame(rows)
