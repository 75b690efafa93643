"""Cautions about models (stored texts, system prompts, rounding) and methods (paths, sums)."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import pandas as pd
from scipy.special import logit

from interp.analysis.cautions.answers import MOST_OUTSIDE, OUTSIDE, remedy
from interp.analysis.cautions.caution import (
    FOREIGN,
    GAP,
    OUTSIDE_OPTIONS,
    PATHS,
    ROUNDING,
    SYSTEM_PROMPT,
    TEXTS,
    Caution,
    percent,
    reply_text,
)
from interp.attribution.registry import ATTRIBUTION, find_method, method_names
from interp.errors import UserError, one_line
from interp.measuring.spec import ModelFacts, Replies
from interp.variants import name_of

ROUNDED = 0.25
"""Share of the typical difference between the sides of a pair at which rounding matters. The
estimate counts only the last rounding; earlier layers add to it."""

LARGE_GAP = 0.05
"""Mean gap between the sum of a method's scores and the change in the target to which they should
add up, as a share of the mean change, from which a caution says so."""

SURPRISING = 0.05
"""Surprisal minus entropy in nats per token from which stored thoughts are less probable than the
model's own, beyond what other numerical precision on another machine does to probabilities."""

MORE = 5
"""How many times as many steps a caution proposes if scores do not add up."""


def model_cautions(
    facts: Mapping[str, ModelFacts], differences: Mapping[str, float], *, compared: bool = True
) -> Iterator[Caution]:
    """Cautions about stored texts, replies, system prompts of templates, and rounding.

    Differences are those of `side_differences`. If options alone are `compared`, no table tells
    what models reply.
    """
    for model, traits in facts.items():
        if traits.surprise is not None:
            yield from _foreign(model, traits.texts, *traits.surprise)
        if traits.unfitting:
            text = f"of the texts in {traits.texts}: {'; '.join(traits.unfitting)}."
            yield Caution(TEXTS, model, text, numbers={"problems": list(traits.unfitting)})
        if compared and traits.replies is not None:
            yield from _replies(model, traits.replies)
        if traits.system_prompt:
            text = (
                f"its chat template writes a system prompt of its own, "
                f"“{one_line(traits.system_prompt, 100)}”; --system-prompt replaces it."
            )
            yield Caution(SYSTEM_PROMPT, model, text, numbers={"text": traits.system_prompt})
        if traits.spacing is not None and model in differences:
            yield from _rounding(model, traits, differences[model])


def _foreign(model: str, file: str, mean: float, se: float) -> Iterator[Caution]:
    """That stored thoughts are less probable than what the model itself would write."""
    # So many standard errors are exceeded once in 2,000 by chance.
    if mean > SURPRISING and mean > 3.3 * se:
        text = (
            f"the thoughts in {file} are less probable to it than its own: a token is on average "
            f"{mean:.2f} nats more surprising than those that it samples (0 ± {se:.2f} for its "
            "own), so another model may have written them, or this one with other weights, after "
            "other prompts or at a temperature above 1."
        )
        yield Caution(FOREIGN, model, text, numbers={"mean": mean, "se": se})


def _replies(model: str, replies: Replies) -> Iterator[Caution]:
    """That a model of which only preferences between options are shown would reply with none."""
    read, outside, token, *_ = replies
    share = outside / read
    if share >= OUTSIDE:
        text = (
            f"{percent(share)} of the replies that were tried ({outside:,} of {read:,}) give none "
            f"of the options; most often they begin with “{reply_text(token)}”. "
            "What is measured here is which of two options it prefers, whatever it replies."
            f"{remedy(replies)}"
        )
        numbers = {"share": share, "replies": read, "token": token}
        yield Caution(OUTSIDE_OPTIONS, model, text, voids=share >= MOST_OUTSIDE, numbers=numbers)


def path_cautions(facts: Mapping[str, ModelFacts], methods: Sequence[str]) -> Iterator[Caution]:
    """Cautions about paths through a model that the attribution methods leave out."""
    installed = [label for label in methods if name_of(label) in method_names()]
    gradients = [label for label in installed if find_method(label).differentiates]
    for model, traits in facts.items():
        if gradients and traits.reads_tokens_again:
            text = (
                "its later layers read the tokens too (per-layer embeddings), which gradients with "
                f"respect to the input embeddings leave out ({', '.join(gradients)}); effects, "
                "which change the prompt, do not."
            )
            yield Caution(PATHS, model, text, numbers={"methods": gradients})
        if traits.attention_layers and "attention" in methods:
            layers = ", ".join(map(str, traits.attention_layers))
            text = (
                f"only its layers {layers} have attention, of which the score of attention is the "
                "mean; what the other layers move between tokens is left out. Effects leave out "
                "nothing."
            )
            yield Caution(PATHS, model, text, numbers={"layers": list(traits.attention_layers)})


def gap_cautions(gaps: pd.DataFrame) -> Iterator[Caution]:
    """Cautions about scores that do not add up as they should (`completeness_table`)."""
    for row in gaps[gaps["relative_gap"] >= LARGE_GAP].to_dict("records"):
        label, size, change = str(row["method"]), row["gap_size"], row["difference_size"]
        text = (
            f"the scores of {label} miss the change in the target that they should add up to by "
            f"{percent(row['relative_gap'])} (by {size:.2g} on average, of {change:.2g}); "
            f"{_remedy(label)}."
        )
        numbers = {name: row[name] for name in ("method", "relative_gap", "gap_size", "prompts")}
        yield Caution(GAP, str(row["model"]), text, numbers=numbers)


def _remedy(label: str) -> str:
    """More of what makes a method's scores add up or, if there is no more, when they do."""
    complete = find_method(label).complete
    name, options = ATTRIBUTION.parsed(label)
    for option, value in options:
        if f"`{option}`" in complete:
            values = {**dict(options), option: MORE * value}
            more = ":".join([name, *(f"{each}={amount}" for each, amount in values.items())])
            try:
                return f"try more {option}, such as {ATTRIBUTION.label(more)}"
            except UserError:  # above the largest value
                break
    return f"they add up {complete.replace('`', '')}"


def _rounding(model: str, facts: ModelFacts, difference: float) -> Iterator[Caution]:
    """A caution if rounding matters beside the difference between the sides."""
    assert facts.spacing is not None
    # Four rounded logits enter each difference, each with an error that is uniform over a spacing.
    error = facts.spacing * math.sqrt(4 / 12)
    if error < ROUNDED * difference:
        return
    text = (
        f"{facts.dtype} rounds its logits to multiples of {facts.spacing:.3g}, which alone changes "
        f"the difference between the sides of a pair by about {error:.2g} (root mean square); "
        f"the sides differ by {difference:.2g} (median). Use --dtype float32."
    )
    numbers = {"spacing": facts.spacing, "error": error, "difference": difference}
    yield Caution(ROUNDING, model, text, numbers=numbers)


def side_differences(options: pd.DataFrame, prompts: pd.DataFrame) -> dict[str, float]:
    """By model, the median over pairs of how far, at most, an option's log-odds differ by side."""
    rows = options.dropna(subset="relative_probability")
    rows = rows.merge(prompts[["prompt_id", "pair_id"]], on="prompt_id")
    odds = pd.Series(logit(rows["relative_probability"].to_numpy(dtype=float)), rows.index)
    each = odds.groupby([rows["model"], rows["pair_id"], rows["option"]], sort=False)
    spread = (each.max() - each.min())[each.size() > 1]
    spread = spread[np.isfinite(spread)]
    by_pair = spread.groupby(level=[0, 1], sort=False).max()
    medians: dict[str, float] = by_pair.groupby(level=0, sort=False).median().to_dict()
    return medians


GAP_COLUMNS = ["model", "prompt_id", "method", "target", "score", "completeness_gap"]
"""Columns of the segment_scores table that `completeness_table` uses."""

_BY = ["model", "method", "target"]


def completeness_table(parts: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """One row per model, method and target, for methods whose scores should add up.

    A prompt's gap is the sum of its scores minus the difference in the target between the prompt
    and what the method compares it with (completeness: Sundararajan et al. 2017, Section 3).
    Columns are model, method, target, prompts; difference and gap, means over prompts in the
    target's unit; difference_size and gap_size, the means of their absolute values; largest_gap,
    the largest absolute gap; and relative_gap, gap_size divided by difference_size. Each prompt
    counts once. All rows of a prompt are in one part.
    """
    sums = pd.concat([pd.DataFrame(columns=[*_BY, "sum", "gap"]), *map(_by_prompt, parts)])
    sums = sums.astype({"sum": float, "gap": float})
    difference = sums["sum"] - sums["gap"]
    rows = sums.assign(
        difference=difference, difference_size=difference.abs(), gap_size=sums["gap"].abs()
    )
    table: pd.DataFrame = rows.groupby(_BY, sort=False).agg(
        prompts=("gap", "size"),
        difference=("difference", "mean"),
        gap=("gap", "mean"),
        difference_size=("difference_size", "mean"),
        gap_size=("gap_size", "mean"),
        largest_gap=("gap_size", "max"),
    )
    relative = table["gap_size"] / table["difference_size"].where(table["difference_size"] > 0)
    return table.assign(relative_gap=relative).reset_index()


def adds_up(label: str) -> bool:
    """Whether a method promises that its scores add up; False if it is no longer installed."""
    return name_of(label) in method_names() and bool(find_method(label).complete)


def _by_prompt(scores: pd.DataFrame) -> pd.DataFrame:
    """The sum of the scores and the gap of each prompt, by method."""
    promised = scores["method"].map(adds_up).astype(bool)
    rows = scores[promised & scores["completeness_gap"].notna()]
    each = rows.groupby([*_BY, "prompt_id"], sort=False)
    return each.agg(sum=("score", "sum"), gap=("completeness_gap", "first")).reset_index()
