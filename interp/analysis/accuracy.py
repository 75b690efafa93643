"""Accuracy by side and by pair or group (Chan et al. 2024, Section 3.4, formulas 1 to 3)."""

from collections.abc import Collection, Sequence

import numpy as np
import pandas as pd

from interp.console import counted
from interp.errors import UserError
from interp.statistics.proportions import proportions
from interp.tables import TIE


def accuracies(answers: pd.DataFrame, prompts: pd.DataFrame) -> pd.Series:
    """Accuracies of one model.

    The index: paired_accuracy (1): share of pairs, or groups, of several prompts, all of which are
    answered correctly; {side}_accuracy for each side (2, 3), in the order of the prompts: share of
    the side's prompts that are answered correctly; prompts: number of judged prompts, or of all
    prompts if none is judged. Prompts are weighted, so the shares describe the whole data set even
    if one stratum was sampled more heavily than another. A prompt whose most probable token is not
    an answer counts as wrong. Prompts that failed, prompts answered by generated text, and the
    pairs of such prompts are not judged here. If no prompt is judged, the accuracy is NaN.
    """
    joined = prompts[["prompt_id", "pair_id", "side", "weight"]].merge(
        answers[["prompt_id", "correct"]], on="prompt_id", validate="one_to_one"
    )
    judged = joined[joined["correct"].notna()].assign(correct=is_correct)
    split = joined["correct"].isna() | joined["pair_id"].isin(alone(prompts))
    whole = judged[~judged["pair_id"].isin(joined.loc[split, "pair_id"])]
    pairs = whole.groupby("pair_id").agg(correct=("correct", "all"), weight=("weight", "first"))
    values = {"paired_accuracy": _share(pairs)}
    for side in prompts["side"].unique():
        values[f"{side}_accuracy"] = _share(judged[judged["side"] == side])
    return pd.Series({**values, "prompts": len(judged) or len(joined)}, dtype=object)


def _share(rows: pd.DataFrame) -> float:
    right, weights = (rows[name].to_numpy(dtype=float) for name in ("correct", "weight"))
    return float(np.average(right, weights=weights)) if len(rows) else np.nan


def accuracy_table(answers: pd.DataFrame, prompts: pd.DataFrame) -> pd.DataFrame:
    """One row per model: model, paired_accuracy, accuracy of each side, prompts."""
    rows = {
        model: accuracies(rows, prompts) for model, rows in answers.groupby("model", sort=False)
    }
    return pd.DataFrame(rows).T.rename_axis("model").reset_index().infer_objects()


def accuracy_by(
    answers: pd.DataFrame,
    prompts: pd.DataFrame,
    *,
    factors: Sequence[str],
    sides: tuple[str, ...],
    cluster: str | None = None,
    weight: str | None = None,
) -> pd.DataFrame:
    """One row per model, combination of factors and measure, with a 95% interval.

    Columns are model, the factors, measure, accuracy, low, high, pairs, clusters and note.
    `measure` is "paired" for formula 1 (all members of a group of several), or the name of a side
    for formulas 2 and 3. Only pairs in which every side was answered are counted. The intervals are
    those of `interp.statistics.proportions`. Factors are columns that describe a pair. Pairs with
    the same value of `cluster`, such as their entity, are dependent, and each counts as `weight`
    pairs of the data set; by default, pairs are independent and count once.

    Raises:
        UserError: a factor, cluster or weight is not a column or differs between the sides of a
            pair, or a model answered a prompt twice.
    """
    kept = list(dict.fromkeys(filter(None, [*factors, cluster, weight])))
    pairs = pairs_of(answers, prompts, keep=kept, sides=sides)
    values, by = ["paired", *sides], ["model", *factors]
    table = proportions(pairs, values=values, by=by, cluster=cluster, weight=weight)
    return table.rename(columns={"share": "accuracy", "n": "pairs"})


def pairs_of(
    answers: pd.DataFrame, prompts: pd.DataFrame, *, keep: Sequence[str], sides: tuple[str, ...]
) -> pd.DataFrame:
    """One row per model and pair (or group) whose members were all judged.

    Columns are model, pair_id, those in `keep`, for each side whether it was answered correctly (NA
    for a side that the group lacks), and paired: whether all were (NA for a prompt that is alone).
    """
    _check_pair_columns(prompts, keep)
    prompts = prompts[prompts["side"].isin(sides)]
    pairs = prompts.drop_duplicates("pair_id")[["pair_id", *keep]]
    models = pd.Index(answers["model"].unique())
    answers = answers[answers["correct"].notna()]
    # Strings are compared once; everything below works with integer codes.
    prompt = pd.Index(prompts["prompt_id"]).get_indexer(pd.Index(answers["prompt_id"]))
    rows, prompt = answers[prompt >= 0], prompt[prompt >= 0]
    place = pd.Index(sides).get_indexer(pd.Index(prompts["side"]))
    group = pd.factorize(prompts["pair_id"])[0]
    has = np.zeros((len(pairs), len(sides)), dtype=bool)
    has[group, place] = True
    cell = models.get_indexer(pd.Index(rows["model"])), group[prompt], place[prompt]
    answered = np.zeros((len(models), len(pairs), len(sides)), dtype=bool)
    correct = answered.copy()
    answered[cell] = True
    correct[cell] = is_correct(rows)
    if answered.sum() < len(rows):
        raise UserError("a model answered a prompt twice; expected one answer per model and prompt")
    model, pair = np.nonzero((answered | ~has).all(axis=2))
    table = pairs.iloc[pair].reset_index(drop=True)
    table.insert(0, "model", models[model])
    every = np.concatenate([correct, (correct | ~has).all(axis=2, keepdims=True)], axis=2)
    right = pd.DataFrame(every[model, pair], columns=[*sides, "paired"])
    if not has.all() or len(sides) < 2:
        lacking = np.column_stack([~has, has.sum(axis=1) < 2])[pair]
        right = right.astype("boolean").mask(lacking)
    return table.join(right)


def alone(prompts: pd.DataFrame) -> Sequence[str]:
    """The pairs, or groups, that have one prompt."""
    return prompts.loc[~prompts["pair_id"].duplicated(keep=False), "pair_id"].tolist()


def whole_pairs(prompts: pd.DataFrame, answers: pd.DataFrame) -> pd.DataFrame:
    """The prompts of pairs whose sides were all answered by every model in `answers`."""
    models = answers["model"].nunique()
    measured = answers["prompt_id"].value_counts().reindex(prompts["prompt_id"], fill_value=0)
    complete = (measured == models).groupby(prompts["pair_id"].to_numpy()).all()
    return prompts[prompts["pair_id"].map(complete)]


def without_answer(answers: pd.DataFrame) -> pd.Series:
    """By model, the share of prompts without errors whose most probable token is not an option."""
    none = (answers["answer"] == "") & (answers["error"] == "")
    return none.groupby(answers["model"], sort=False).mean()


def notes_without_answer(answers: pd.DataFrame, *, said: Collection[str]) -> list[str]:
    """Lines for each model with unanswered or tied prompts, giving the share of such prompts.

    Those of models in `said` are said elsewhere, as by a caution (`said_outside`).
    """
    shares = without_answer(answers)
    shares = shares[~shares.index.isin(said)]
    silent = [
        f"{model}: {share:.1%} of the prompts have a most probable token that is not an answer "
        "option"
        for model, share in shares[shares > 0].items()
    ]
    ties = (answers["answer"] == TIE).groupby(answers["model"], sort=False).agg(["sum", "size"])
    return silent + [
        f"{model}: {counted(tied, 'prompt')} of {size:,} have no answer, since two tokens are "
        "equally probable (a tie); float32 tells more tokens apart"
        for model, tied, size in ties[ties["sum"] > 0].itertuples()
    ]


def notes_unjudged(answers: pd.DataFrame) -> list[str]:
    """A line for each model with prompts whose answers only generated text gives."""
    unjudged = answers["correct"].isna() & (answers["error"] == "")
    counts = unjudged.groupby(answers["model"], sort=False).agg(["sum", "size"])
    return [
        f"{model}: {counted(some, 'prompt')} of {size:,} not judged, since only generated text "
        "gives the answer; use generate"
        for model, some, size in counts[counts["sum"] > 0].itertuples()
    ]


def outcome_table(completions: pd.DataFrame) -> pd.DataFrame:
    """One row per model: shares of generated texts by outcome, and of texts cut off at the limit.

    Columns are model, answered, unparsed, refused (these three sum to 1), cut_off and texts; rows
    with an error are not counted.
    """
    texts = completions[completions["error"] == ""]
    outcomes = {name: texts["outcome"] == name for name in ("answered", "unparsed", "refused")}
    shares = pd.DataFrame({**outcomes, "cut_off": texts["finished"] == "length"})
    by_model = shares.groupby(texts["model"], sort=False)
    return by_model.mean().assign(texts=by_model.size()).reset_index()


def thought_table(thoughts: pd.DataFrame) -> pd.DataFrame:
    """One row per model: how its thoughts ended, and how long they are.

    Columns are model, thoughts; ended, too_long, unmarked (numbers of thoughts that reached their
    end mark, the token limit, or the end of the text without a mark; these sum to `thoughts`);
    forced (number of thoughts to which the end mark was added at the limit); other_tokens (number
    of thoughts whose text, tokenized again, does not give the generated tokens); tokens, sentences
    (means). Rows with an error are not counted.
    """
    written = thoughts[thoughts["error"] == ""]
    names = {"ended": "marker", "too_long": "length", "unmarked": "eos"}
    counts = {name: written["finished"] == value for name, value in names.items()}
    counts["forced"] = written["forced"].eq(True)
    counts["other_tokens"] = written["same_tokens"].eq(False)
    lengths = {"tokens": written["tokens"], "sentences": written["sentences"].map(len)}
    sums = pd.DataFrame(counts).groupby(written["model"], sort=False).sum()
    means = pd.DataFrame(lengths).groupby(written["model"], sort=False).mean()
    sums.insert(0, "thoughts", written.groupby("model", sort=False).size())
    return sums.join(means).reset_index()


def is_correct(answers: pd.DataFrame) -> pd.Series:
    """Whether each row was answered correctly; False for a row that was not judged."""
    return answers["correct"].eq(True)


def _check_pair_columns(prompts: pd.DataFrame, columns: Sequence[str]) -> None:
    for column in columns:
        if column not in prompts:
            raise UserError(
                f"the prompts have no column {column!r}; they have {', '.join(prompts.columns)}"
            )
        differing = prompts.drop_duplicates(["pair_id", column])["pair_id"].duplicated()
        if differing.any():
            pair = prompts.loc[differing.index[differing], "pair_id"].iloc[0]
            raise UserError(
                f"{column} differs between the sides of pair {pair!r}; expected a factor of the "
                "whole pair"
            )
