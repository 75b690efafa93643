"""The ledger of a fact: is it completed, retrieved in the prompt, and used for the answer?

Three measurements of the same model are joined, prompt by prompt.

1. known: the greedy completion of the fact, outside the prompt, names its answer (knowledge probe),
   in the wording that `known_by_wording` chooses.
2. retrieved: the right word is read at the chosen tokens of the prompt.
3. used: exchanging the word there moves the answer more than a random direction of the same norm
   does. A prompt's strength is the effect, averaged over its roles and layers, minus that of its
   random directions; its threshold is the `LEVEL` quantile, over prompts of other clusters, of what
   each random direction does beyond the prompt's others.

In 2, a word's strength is its score, averaged over the middle layers, minus its mean over the
prompts of other clusters in which it is wrong, minus the same of the prompt's other wrong words.
Strengths of wrong words show what a word gets without being the fact: in a prompt, a word counts as
retrieved if its strength exceeds `LEVEL` of the strengths of wrong words in the prompts of other
clusters. How many wrong words of the prompt itself exceed this threshold is the verdict's error.

Right words have no part in what is subtracted. Facts that are retrieved would otherwise lower the
strengths of wrong words, in their prompts and wherever their words are wrong, and with them the
threshold, so that the verdict would err more often where nothing is retrieved.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int

from interp.errors import UserError, shortened
from interp.estimates.compute import estimate
from interp.estimates.declared import Plain, Share, Table
from interp.estimates.shown import ALL
from interp.measurements.lens.tables import PLACE, in_middle, others_mean, with_words
from interp.statistics.proportions import proportions
from interp.statistics.summaries import LEVEL, grouped
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
    present = effects.dropna(subset="effect")
    keys = ["model", "prompt_id"]
    directed = present[present["source"] == "direction"].groupby(keys, sort=False)["effect"].mean()
    random = present[present["source"] == "placebo"]
    drawn = random.groupby([*keys, "draw"], sort=False)["effect"].mean().unstack("draw")
    if drawn.shape[1] < 2:
        raise UserError("the effects have fewer than two random directions; expected draws >= 2")
    parts = [
        _verdicts(directed[rows.index], rows, clusters)
        for _, rows in drawn.groupby("model", sort=False)
    ]
    return pd.concat(parts).reset_index()


def _verdicts(directed: pd.Series, drawn: pd.DataFrame, clusters: pd.Series) -> pd.DataFrame:
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
    strength = directed.to_numpy(float) - mean[:, 0]
    verdict = pd.array(strength > threshold, dtype="boolean")
    verdict[np.isnan(threshold)] = pd.NA
    error = (beyond > threshold[:, None]).mean(1)
    columns = {"strength": strength, "threshold": threshold, "used": verdict, "error": error}
    return pd.DataFrame(columns, index=drawn.index)


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
    prompts: pd.DataFrame, factors: Mapping[str, pd.Series] = MappingProxyType({})
) -> pd.DataFrame:
    """The table `LEDGER` of all prompts, then of those with each value of some factors.

    The verdicts on these prompts may have erred less often than their errors say (`_true_parts`).
    Used and still wrong is an entry of wrong answers like any other.
    """
    judged = prompts.dropna(subset=["correct", "entry"])
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


_AT = PLACE[:3]


def retrieved(readings: pd.DataFrame, clusters: pd.Series) -> pd.DataFrame:
    """The verdicts on prompts that have a right word; missing with a single cluster.

    One row per prompt and `_AT`: prompt_id, cluster, fact; strength of the right word, in logits;
    threshold, the `LEVEL` quantile of the strengths of wrong words in prompts of other clusters;
    retrieved, whether the strength exceeds it; error, the share of the prompt's wrong words whose
    strength does; embedding: `retrieved` for what is read from the token's embedding alone.
    """
    asked = with_words(in_middle(readings), clusters)
    parts = [_retrieved(rows) for _, rows in grouped(asked, [*_AT, "among"])]
    about = ["strength", "threshold", "retrieved", "error", "embedding"]
    columns = [*_AT, "prompt_id", "cluster", "fact", *about]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=columns)


def _retrieved(rows: pd.DataFrame) -> pd.DataFrame:
    """The verdicts of prompts that are read among the same words at the same place."""
    words: Sequence[str] = rows["among"].iloc[0]
    first = rows.drop_duplicates("prompt_id").reset_index(drop=True)
    codes = pd.factorize(first["cluster"])[0]
    right = np.eye(len(words), dtype=bool)[first["right"].map(words.index)]
    facts = first[[*_AT, "prompt_id", "cluster", "fact"]]
    if codes.max() == 0:
        nothing = dict.fromkeys(("strength", "threshold", "error"), np.nan)
        return facts.assign(**nothing, retrieved=None, embedding=None)
    strengths, alone = (
        _strengths(rows, name, right, codes) for name in ("scores", "from_embedding")
    )
    limits, limits_alone = (_thresholds(values, right, codes) for values in (strengths, alone))
    beyond = strengths > limits[:, None]
    return facts.assign(
        strength=strengths[right],
        threshold=limits,
        retrieved=beyond[right],
        error=(beyond & ~right).sum(1) / (len(words) - 1),
        embedding=(alone > limits_alone[:, None])[right],
    )


def _strengths(
    rows: pd.DataFrame,
    column: str,
    right: Bool[np.ndarray, "prompt word"],
    clusters: Int[np.ndarray, " prompt"],
) -> Float[np.ndarray, "prompt word"]:
    """Each word's strength in each prompt, in the order in which the prompts appear.

    Of two words, the other one is right for the wrong one; it is then subtracted all the same.
    """
    scores = pd.DataFrame(np.stack(rows[column].tolist()), index=rows["prompt_id"].to_numpy())
    means = scores.groupby(level=0, sort=False).mean().to_numpy()
    centred = means - others_mean(means, clusters, ~right)
    counted = ~right if right.shape[1] > 2 else np.ones_like(right)
    others = np.where(counted, centred, 0.0).sum(1, keepdims=True) - counted * centred
    return np.asarray(centred - others / (counted.sum(1, keepdims=True) - counted))


def _thresholds(
    strengths: Float[np.ndarray, "prompt word"],
    right: Bool[np.ndarray, "prompt word"],
    clusters: Int[np.ndarray, " prompt"],
) -> Float[np.ndarray, " prompt"]:
    """For each prompt, the quantile of wrong words' strengths in prompts of other clusters."""
    by_cluster = [
        np.quantile(strengths[clusters != code][~right[clusters != code]], LEVEL, method="higher")
        for code in range(clusters.max() + 1)
    ]
    return np.asarray(np.asarray(by_cluster)[clusters])


RETRIEVAL = Table(
    name="retrieval_table",
    title="Prompts in which the right word is retrieved",
    text="""A word counts as retrieved in a prompt if its strength, the centred score averaged over
    the middle layers minus the mean of the other words', exceeds 95% of the strengths of wrong
    words in prompts of other clusters. answered: which prompts, by the model's answer.""",
    by=[*_AT, "answered"],
    measured="lens_readings",
    numbers=[
        Share("retrieved", "prompts in which the right word is retrieved", "share"),
        Plain(
            "embedding",
            "what the lens reads from the token's embedding alone would give",
            "share",
            why="retrieved",
        ),
        Plain("error", "the prompt's own wrong words that exceed it", "share", why="retrieved"),
        Plain("strength", "mean of the right word's", "logits", why="retrieved"),
    ],
    trials="prompts",
    split=["model"],
    more=[column("answered", TEXT, "`all` prompts, or those answered `right` or `wrong`")],
)


def retrieval_trials(readings: pd.DataFrame, answers: pd.DataFrame) -> pd.DataFrame:
    """The rows of `retrieved`, once as answered all and, if judged, once as right or wrong."""
    judged = readings.merge(answers[["model", "prompt_id", "correct"]], on=["model", "prompt_id"])
    kind = judged["correct"].map({True: "right", False: "wrong"})
    trials = [judged.assign(answered="all"), judged.assign(answered=kind).dropna(subset="answered")]
    return pd.concat(trials, ignore_index=True)
