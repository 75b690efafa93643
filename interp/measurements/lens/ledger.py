"""The ledger of a fact: is it completed, retrieved in the prompt, and used for the answer?

Three measurements of the same model are joined, prompt by prompt.

1. known: the greedy completion of the fact, outside the prompt, names its answer (knowledge probe),
   in the wording that `known_by_wording` chooses.
2. retrieved: the right word is read at the chosen tokens of the prompt (`retrieval`).
3. used: exchanging the word there moves the answer more than a random direction of the same norm
   does. A prompt's strength is the effect, averaged over its roles and layers, minus that of its
   random directions; its threshold is the `LEVEL` quantile, over prompts of other clusters, of what
   each random direction does beyond the prompt's others.
"""

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
import pandas as pd
from jaxtyping import Float

from interp.errors import UserError, shortened
from interp.estimates.compute import estimate
from interp.estimates.declared import Plain, Share, Table
from interp.estimates.shown import ALL
from interp.statistics.proportions import proportions
from interp.statistics.summaries import LEVEL
from interp.tables import TEXT, column

NOT_KNOWN, NOT_RETRIEVED, NOT_USED, USED = ENTRIES = (
    "not completed in this wording",
    "completed, not retrieved",
    "retrieved, not used",
    "used",
)
"""The entries of a ledger: the first step that is missing, or none."""

_KINDS = ["direction", "change", "dose"]


def used(effects: pd.DataFrame, clusters: pd.Series) -> pd.DataFrame:
    """One row per model and prompt: strength, threshold, used, error.

    error: share of the prompt's own random directions that pass its threshold. The effects are rows
    of steering_effects.
    """
    if len(effects[_KINDS].drop_duplicates()) > 1:
        kinds = [f"{name} {', '.join(map(str, effects[name].unique()))}" for name in _KINDS]
        raise UserError(
            f"the effects are those of several changes ({shortened('; '.join(kinds), 120)}); "
            "expected one direction, one change and one dose"
        )
    known = effects.dropna(subset="effect")
    keys = ["model", "prompt_id"]
    directed = known[known["source"] == "direction"].groupby(keys, sort=False)["effect"].mean()
    random = known[known["source"] == "placebo"]
    drawn = random.groupby([*keys, "draw"], sort=False)["effect"].mean().unstack("draw")
    if drawn.shape[1] < 2:
        raise UserError("the effects have fewer than two random directions; expected draws >= 2")
    parts = [
        _verdicts(directed[rows.index], rows, clusters)
        for _, rows in drawn.groupby("model", sort=False)
    ]
    return pd.concat(parts).reset_index()


def _verdicts(own: pd.Series, drawn: pd.DataFrame, clusters: pd.Series) -> pd.DataFrame:
    """The verdicts of one model; `drawn` has a row for each prompt and a column for each draw."""
    prompts = drawn.index.get_level_values("prompt_id").to_series()
    codes = pd.factorize(prompts.map(clusters))[0]
    values = drawn.to_numpy(float)
    mean, count = values.mean(1, keepdims=True), values.shape[1]
    beyond = (values - mean) * count / (count - 1)  # minus the mean of the other draws
    limits = np.full(codes.max() + 1, np.nan)
    for code in range(len(limits)) if len(limits) > 1 else ():
        limits[code] = np.quantile(beyond[codes != code], LEVEL, method="higher")
    threshold = limits[codes]
    strength = own.to_numpy(float) - mean[:, 0]
    verdict = pd.array(strength > threshold, dtype="boolean")
    verdict[np.isnan(threshold)] = pd.NA
    return pd.DataFrame(
        {
            "strength": strength,
            "threshold": threshold,
            "used": verdict,
            "error": (beyond > threshold[:, None]).mean(1),
        },
        index=drawn.index,
    )


def ledger(
    known: pd.DataFrame, retrieved: pd.DataFrame, effects: pd.DataFrame, answers: pd.DataFrame
) -> pd.DataFrame:
    """One row per model and prompt of which all three are measured, with its entry.

    Columns are model, prompt_id, cluster, fact, correct, wording, known, retrieved, used,
    retrieved_error, used_error and entry, one of `ENTRIES`: the first step that is missing; later
    steps do not count. A prompt whose entry depends on a missing verdict has none. `retrieved` is
    `LensReadings.retrieved` of a single group of tokens and method.

    Raises:
        UserError: there are several groups of tokens, methods, directions, changes or doses, or no
            prompt has all three.
    """
    if len(retrieved[["group", "method"]].drop_duplicates()) > 1:
        raise UserError(
            "the readings are those of several groups of tokens or methods; expected one of each"
        )
    clusters = retrieved.drop_duplicates("prompt_id").set_index("prompt_id")["cluster"]
    facts = known_by_wording(known, retrieved.drop_duplicates("fact").set_index("fact")["cluster"])
    verdicts = used(effects[effects["prompt_id"].isin(clusters.index)], clusters)
    keys = ["model", "prompt_id"]
    entries = (
        retrieved.rename(columns={"error": "retrieved_error"})
        .merge(verdicts.rename(columns={"error": "used_error"})[[*keys, "used", "used_error"]])
        .merge(facts)
        .merge(answers[[*keys, "correct"]])
    )
    if entries.empty:
        raise UserError(
            "no prompt has a fact that was probed, a reading and an effect; expected the three "
            "measurements of the same models and prompts"
        )
    steps = entries[["known", "retrieved", "used"]].astype("boolean")
    entry = np.select(
        [~steps[name].fillna(True).to_numpy(bool) for name in steps], ENTRIES[:3], ENTRIES[3]
    )
    missing = [steps[name].isna() & np.isin(entry, ENTRIES[n:]) for n, name in enumerate(steps)]
    entries = entries.assign(
        **steps, entry=pd.Series(entry, entries.index).mask(np.any(missing, axis=0))
    )
    columns = ["cluster", "fact", "correct", "wording", *steps]
    return entries[[*keys, *columns, "retrieved_error", "used_error", "entry"]]


def known_by_wording(known: pd.DataFrame, clusters: pd.Series) -> pd.DataFrame:
    """Whether a model completes each fact in the wording chosen for it.

    One row per model and fact: model, fact, wording, known. Choosing the best of several wordings
    on the facts that are then judged by it would flatter the model. So the clusters are halved, in
    turn, and the facts of each half are judged by the wording in which the model completes the
    largest share of the other facts: those of the other half and those that no prompt is about. Of
    equal ones, and without other facts, the first counts; a fact that was not asked in a wording is
    judged by the next best. Without the columns fact and wording, every fact (prompt_id) has one
    wording; `clusters` has those of the facts that a prompt is about.
    """
    if "wording" not in known:
        known = known.assign(fact=known["prompt_id"], wording="as asked")
    half = known["fact"].map(pd.Series(pd.factorize(clusters)[0] % 2, clusters.index))
    chosen, by = [], ["model", "wording"]
    for number in (0, 1):
        shares = known[half != number].groupby(by)["known"].mean().rename("others")
        rows = known[half == number].join(shares, on=by)
        best_first = rows.sort_values("others", ascending=False, kind="stable")
        chosen.append(best_first.drop_duplicates(["model", "fact"]))
    return pd.concat(chosen)[["model", "fact", "wording", "known"]]


LEDGER = Table(
    name="ledger_shares",
    title="Failures by the first step that is missing",
    text="""Shares are as counted. Their intervals also reach over those of the shares without the
    errors of the verdicts, if what is retrieved or used is always found.""",
    by=["model", "factor", "value", "answered", "entry"],
    measured="answers",
    numbers=[
        Share("share", "prompts with this entry", "share", ends=("low", "high")),
        Plain("retrieved_error", "how often this verdict errs", "share", why="share"),
        Plain("used_error", "how often this verdict errs", "share", why="share"),
        Plain("seen", "right words that stand before the token", "share", why="share"),
    ],
    trials="prompts",
    counted="n",
    order=["share", "low", "high", "n", "clusters"],
    more=[
        column("factor", TEXT, "a factor of the prompts, or `all`"),
        column("value", TEXT, "its value; empty for all"),
        column("answered", TEXT, "`right` or `wrong`"),
        column("entry", TEXT, "the first step that is missing, or none"),
    ],
)


def ledger_table(
    found: pd.DataFrame, factors: Mapping[str, pd.Series] = MappingProxyType({})
) -> pd.DataFrame:
    """The table `LEDGER` of all prompts, then of those with each value of some factors.

    The interval of a share reaches over those of the share as counted and of the share without the
    verdicts' errors (`_true_parts`), since the verdicts on these prompts may have erred less often.
    Used and still wrong is an entry of wrong answers like any other.
    """
    judged = found.dropna(subset=["correct", "entry"])
    answered = judged["correct"].map({True: "right", False: "wrong"})
    judged = judged.assign(answered=answered, seen=judged.get("seen"))
    parts = [judged.assign(factor=ALL, value="")]
    for name, values in factors.items():
        rows = judged.assign(factor=name, value=values).dropna(subset="value")
        parts.append(rows.sort_values("value", kind="stable"))
    every = pd.concat(parts, ignore_index=True)
    entries = pd.DataFrame({"which": ENTRIES})
    trials = every.merge(entries, how="cross")
    trials = trials.assign(share=trials["entry"] == trials["which"], entry=trials["which"])
    table = estimate(LEDGER, trials)
    of_rows = table.groupby([*LEDGER.by[:-1]], sort=False).indices
    for key, rows in every.groupby([*LEDGER.by[:-1]], sort=False):
        places = of_rows[key]
        low, high = np.transpose(_without_errors(rows))
        table.loc[places, "low"] = np.fmin(table.loc[places, "low"], low)
        table.loc[places, "high"] = np.fmax(table.loc[places, "high"], high)
    return table


def _true_parts(retrieved: float, used: float) -> Float[np.ndarray, "true counted"]:
    """What a prompt counted under each entry adds to the true share of each entry.

    The inverse of the shares in which true entries are counted (Rogan and Gladen 1978), if what is
    retrieved or used is always found, and the verdicts find what is not there in these shares.
    """
    counted = [
        [1.0, 0.0, 0.0, 0.0],
        [0.0, 1 - retrieved, 0.0, 0.0],
        [0.0, retrieved * (1 - used), 1 - used, 0.0],
        [0.0, retrieved * used, used, 1.0],
    ]
    return np.linalg.inv(np.array(counted))


def _without_errors(prompts: pd.DataFrame) -> Float[np.ndarray, "entry 2"]:
    """The ends of the interval of each entry's share without the errors of the verdicts."""
    errors = prompts[["retrieved_error", "used_error"]].astype(float).mean()
    # With larger errors, a verdict would say less than its opposite.
    parts = _true_parts(*errors.fillna(0.0).clip(upper=0.5))
    least, most = np.minimum(0.0, parts.min(axis=1)), np.maximum(1.0, parts.max(axis=1))
    scaled = (parts - least[:, None]) / (most - least)[:, None]
    added = scaled[:, prompts["entry"].map(ENTRIES.index).to_numpy()].T
    rows = pd.DataFrame(added, columns=ENTRIES).assign(cluster=prompts["cluster"].to_numpy())
    ends = proportions(rows, values=ENTRIES, by=[], cluster="cluster")[["low", "high"]]
    shares = least[:, None] + ends.to_numpy() * (most - least)[:, None]
    return np.asarray(np.clip(shares, 0, 1))
