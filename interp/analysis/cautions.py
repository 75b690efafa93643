"""What a careful reader would object to, decided in one place and shown before any number.

Terminals, pages, notebooks and `doctor` print the cautions first, and run.json keeps them in its
summary, in the order of severity.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.special import logit

from interp.analysis.constant import ALIKE, NAMED, Constant, constant_answers, constant_phrasings
from interp.analysis.readings import SAME
from interp.attribution.registry import ATTRIBUTION, find_method, method_names
from interp.console import counted
from interp.errors import UserError, one_line
from interp.prompts.systems import FACT_SIDE
from interp.statistics.clusters import FEWEST
from interp.statistics.decisions import HOLM_LEAST, LEAST, most_tests, out_of_reach
from interp.statistics.summaries import effective_number
from interp.variants import name_of

OUTSIDE_OPTIONS, CONSTANT, SYSTEM_PROMPT, ROUNDING = (
    "replies outside the options",
    "nearly constant answers",
    "a system prompt of the template",
    "rounding",
)
WEIGHTS, LEFT_OUT, UNTESTED = "unequal weights", "left out", "not tested"
PATHS, GAP = "paths that a method leaves out", "scores that do not add up"
SHARED = "shared prompts"
EMBEDDED, COPIED = "read from the embedding alone", "read where it may be copied"
FEW_FAILURES = "too few failures"
WHOLE = "answers read whole"
PLACEBOS = "no more than random directions"
SPREAD = "within the donors' spread"
REACH = "tests that nothing can make significant"
TEXTS, FOREIGN = "texts that do not fit", "thoughts of another model"

FORCED = "forced_choice"
"""Column of answers that are forced choices."""

KINDS = (
    *(FOREIGN, TEXTS, OUTSIDE_OPTIONS, CONSTANT, FEW_FAILURES, LEFT_OUT, SPREAD, EMBEDDED),
    *(COPIED, REACH, PLACEBOS, PATHS, GAP, SYSTEM_PROMPT, ROUNDING, SHARED, WEIGHTS, WHOLE),
    UNTESTED,
)
"""Kinds of cautions, the most severe first."""

OUTSIDE = 0.05
"""Share of replies outside the options from which a caution says so: they all count as wrong, so an
accuracy is then too low by up to 0.05, half the smallest difference of interest."""

MOST_OUTSIDE = 0.5
"""Share of replies outside the options from which an accuracy describes the form of most replies
rather than what the model concludes."""

HALF = 0.5
"""If equal weights would need less than half of the clusters for equally precise means, a caution
gives the number."""

ROUNDED = 0.25
"""Share of the typical difference between the sides of a pair at which rounding matters. The
estimate counts only the last rounding; earlier layers add to it."""

LARGE_GAP = 0.05
"""Mean gap between the sum of a method's scores and the change in the target to which they should
add up, as a share of the mean change, from which a caution says so."""

SURPRISING = 0.05
"""Surprisal minus entropy in nats per token from which stored thoughts are less probable than the
model's own, beyond what other numerical precision on another machine does to probabilities."""

CERTAIN = 3.3
"""Number of standard errors by which it must exceed 0, which happens by chance once in 2,000."""

MORE = 5
"""How many times as many steps a caution proposes if scores do not add up."""

FEW_SIDES = 3
"""Accuracies by side are given for at most so many sides."""

LONGEST_BEGINNING = 200
"""Number of characters of a generated text in which its first words are looked for."""

SHOWN_CHARACTERS = 40
"""Largest number of characters of an option or a token in a caution."""


@dataclass(frozen=True, slots=True)
class Caution:
    """One objection, with its numbers."""

    kind: str
    """One of `KINDS`."""
    model: str
    """Name of the model; empty if the caution is about the prompts."""
    text: str
    """One or two sentences."""
    voids: bool = False
    """Whether the model's accuracies say nothing about what it reads."""
    numbers: Mapping[str, object] = field(default_factory=dict)
    """The numbers in the text, unrounded."""

    @property
    def said(self) -> str:
        """The caution on one line, after the model's name."""
        return f"{one_line(self.model)}: {self.text}" if self.model else self.text


class ModelFacts(NamedTuple):
    """What is known about a model besides its answers."""

    dtype: str
    """The type of its parameters, such as "bfloat16"."""
    system_prompt: str = ""
    """The system prompt that its chat template writes although none was asked for."""
    spacing: float | None = None
    """Distance between neighboring numbers of this type at the size of its logits; None if it is
    not coarse."""
    attention_layers: tuple[int, ...] = ()
    """The layers that have attention, if others have none."""
    reads_tokens_again: bool = False
    """Whether later layers also read the tokens, beside the input embeddings."""
    texts: str = ""
    """The files of stored texts that were judged or read as its thoughts."""
    unfitting: tuple[str, ...] = ()
    """What of these texts does not fit the prompts, with numbers and examples."""
    surprise: tuple[float, float] | None = None
    """How much less probable these thoughts are than the model's own, in nats per token, with the
    standard error of that number for its own; None if they were not read from a file."""


def ordered(cautions: Iterable[Caution]) -> tuple[Caution, ...]:
    """The cautions by severity; those of one kind in the given order.

    That thoughts are not the model's own comes first: it concerns all that is read after them.
    """

    def severity(own: Caution) -> tuple[bool, bool, int]:
        return own.kind != FOREIGN, not own.voids, KINDS.index(own.kind)

    return tuple(sorted(cautions, key=severity))


def read_whole(whole: pd.DataFrame) -> Iterator[Caution]:
    """That options were read whole although first tokens were asked for, as two began alike.

    `whole` has a row for each model and prompt (or pair): model, whole.
    """
    for model, own in whole.groupby("model", sort=False)["whole"]:
        share = float(own.eq(True).mean())
        if share:
            some = "every prompt" if share == 1 else f"{share:.0%} of the prompts"
            yield Caution(
                WHOLE,
                str(model),
                f"options of {some} begin with the same token, so the whole texts were read: "
                "their numbers are log-probabilities of texts rather than of first tokens",
                numbers={"share": share},
            )


def void_models(cautions: Iterable[Caution]) -> dict[str, str]:
    """The models whose accuracies say nothing about what they read, each with the reason."""
    reasons = {
        OUTSIDE_OPTIONS: "most of its replies are outside the options",
        CONSTANT: "its answers hardly depend on the prompt",
        LEFT_OUT: "left out, for the reason above",
    }
    return {own.model: reasons[own.kind] for own in reversed(ordered(cautions)) if own.voids}


def said_outside(cautions: Iterable[Caution]) -> list[str]:
    """The models of which a caution gives the share of replies outside the options."""
    return [own.model for own in cautions if own.kind == OUTSIDE_OPTIONS]


def as_json(cautions: Iterable[Caution], model: str) -> list[dict[str, object]]:
    """The cautions about a model and its prompts, for a record."""
    return [asdict(own) for own in cautions if own.model in (model, "")]


def cautions_on(
    prompts: pd.DataFrame,
    *,
    answers: pd.DataFrame | None = None,
    options: pd.DataFrame | None = None,
    facts: Mapping[str, ModelFacts] = MappingProxyType({}),
    methods: Sequence[str] = (),
    gaps: pd.DataFrame | None = None,
    differences: Mapping[str, float] | None = None,
    cluster: str | None = None,
) -> tuple[Caution, ...]:
    """Everything that a careful reader would object to, by severity.

    Args:
        prompts: the prompts table.
        answers: the models' answers, if they are their own (`answer_cautions`).
        options: rows of the option_probabilities table, if there are any.
        facts: what is known about each model.
        methods: names of the attribution methods that were measured.
        gaps: how far their scores are from adding up, if they should
            (`interp.analysis.completeness.completeness_table`).
        differences: how much the sides of a pair differ for each model, in logits; by default,
            computed from the options (`side_differences`).
        cluster: the factor whose values group dependent prompts, if any.
    """
    if differences is None:
        differences = {} if options is None else side_differences(options, prompts)
    about_answers = () if answers is None else answer_cautions(answers, prompts, options)
    return ordered(
        [
            *about_answers,
            *model_cautions(facts, differences),
            *path_cautions(facts, methods),
            *(() if gaps is None else gap_cautions(gaps)),
            *sample_cautions(prompts, cluster),
        ]
    )


def answer_cautions(
    answers: pd.DataFrame, prompts: pd.DataFrame, options: pd.DataFrame | None = None
) -> Iterator[Caution]:
    """Cautions about replies outside the options, and about answers that hardly vary.

    Prompts with an error, with free text or with a single option are not counted.

    Args:
        answers: rows of the answers table: model, prompt_id, answer (empty if the reply is outside
            the options), error and, if known, predicted_token or completion. A column `FORCED`
            says that the answers are the preferred ones of some options, whatever the replies are.
        prompts: the prompts table.
        options: rows of the option_probabilities table, if there are any.
    """
    chosen = _with_options(answers, prompts, options)
    for model, rows in chosen.groupby("model", sort=False):
        silent = rows["answer"] == ""
        if silent.mean() >= OUTSIDE:
            yield _outside(str(model), rows, silent)
        heard = rows[~silent]
        if silent.mean() >= MOST_OUTSIDE:
            continue
        constant = constant_answers(rows)
        if constant is not None:
            yield _constant(str(model), constant, chosen=FORCED in answers)
        elif phrasings := constant_phrasings(heard):
            yield _in_phrasings(str(model), phrasings, heard["phrasing"].nunique())


def _with_options(
    answers: pd.DataFrame, prompts: pd.DataFrame, options: pd.DataFrame | None
) -> pd.DataFrame:
    """One row per model and prompt that could be answered by choosing an option."""
    kept = ["prompt_id", "pair_id", "side", "gold", "weight"]
    kept += ["phrasing"] * ("phrasing" in prompts)
    rows = answers[answers["answer"].notna() & (answers["error"] == "")]
    rows = rows.merge(prompts[kept], on="prompt_id")
    if options is None or options.empty:
        unknown = pd.Series([()] * len(rows), rows.index, dtype=object)
        return rows.assign(options=rows["pair_id"].map(_golds(prompts)), forced=unknown)
    keys = ["model", "prompt_id"]
    share = options["relative_probability"].fillna(options["probability"])
    highest = share.groupby([options[key] for key in keys], sort=False).transform("max")
    best = options[share >= highest * (1 - SAME)].groupby(keys, sort=False)["option"]
    rows = rows.join(best.agg(tuple).rename("forced"), on=keys)
    names = options.groupby(keys, sort=False)["option"].agg(tuple).rename("options")
    rows = rows.join(names, on=keys)
    several = rows["options"].map(lambda own: isinstance(own, tuple) and len(own) > 1)
    return rows[several.astype(bool)]  # of no rows, pandas knows no type


def _golds(prompts: pd.DataFrame) -> dict[str, tuple[str, ...]]:
    """For each pair, its correct answers in place of its options, which are not stored.

    They are empty if few prompts have the same ones.
    """
    by_pair = prompts.groupby("pair_id", sort=False)["gold"]
    golds = {str(pair): tuple(sorted(set(own.dropna()))) for pair, own in by_pair}
    prompts_with = Counter(golds[pair] for pair in prompts["pair_id"])
    return {pair: own if prompts_with[own] >= ALIKE else () for pair, own in golds.items()}


def _outside(model: str, rows: pd.DataFrame, silent: pd.Series) -> Caution:
    """The share of replies outside the options, and the accuracy of the most probable option."""
    share = float(silent.mean())
    first_tokens = "predicted_token" in rows
    none = "none of the options" if first_tokens else "no valid answer"  # texts may have no options
    text = (
        f"{_percent(share)} of its replies ({silent.sum():,} of {len(rows):,}) give {none} and "
        "count as wrong"
    )
    numbers: dict[str, object] = {"share": share, "replies": len(rows)}
    begun: list[object] = []
    if first_tokens:
        begun = rows.loc[silent, "predicted_token"].mode().tolist()
    if begun:  # a decoder can predict a number that is no token of its tokenizer
        first = str(begun[0])
        text += f"; most often they begin with “{one_line(first, SHOWN_CHARACTERS)}”"
        numbers["token"] = first
    if "completion" in rows:
        texts = rows.loc[silent, "completion"].fillna("").astype(str)
        words = str(texts.map(lambda own: " ".join(own[:LONGEST_BEGINNING].split()[:2])).mode()[0])
        begin = f"they begin with “{one_line(words, SHOWN_CHARACTERS)}”"
        text += f"; most often {begin if words else 'they are empty'}"
        numbers["words"] = words
    text += "."
    if rows["forced"].map(len).all():
        # Equally probable options share the point, as in the table of readings.
        right = [
            (gold in own) / len(own) for gold, own in zip(rows["gold"], rows["forced"], strict=True)
        ]
        accuracy = float(np.average(right, weights=rows["weight"]))
        text += f" Choosing the most probable option instead: accuracy {accuracy:.2f}"
        numbers["forced_accuracy"] = accuracy
        tied = rows["forced"].map(len) > 1
        if tied.any():
            text += f"; {_percent(float(tied.mean()))} of these choices are ties"
            numbers["tied"] = float(tied.mean())
        constant = constant_answers(rows.assign(answer=rows["forced"].str[0])[~tied])
        if constant is not None:
            others = "these choices" if not tied.any() else "the others"
            text += f"; {_percent(constant.same / constant.answers)} of {others} are "
            text += f"{_usual(constant)}, which alone scores {constant.alone['accuracy']:.2f}"
            numbers["forced"] = _json(constant)
        text += "."
    return Caution(OUTSIDE_OPTIONS, model, text, voids=share >= MOST_OUTSIDE, numbers=numbers)


def _constant(model: str, found: Constant, *, chosen: bool) -> Caution:
    """That answers hardly vary; `chosen`: they are choices among options rather than replies."""
    answers = "choices among the options" if chosen else "answers"
    share = found.same / found.answers
    count = f"{found.same:,} of {found.answers:,}"
    if found.within:
        text = f"Within a phrasing, {_percent(share)} of its {answers} ({count}) are the same"
    else:
        text = f"{_percent(share)} of its {answers} ({count}) are {_usual(found)}"
    text += "; they hardly depend on the prompt."
    if found.by_phrasing and not found.within and found.same < found.answers:
        text += f" By phrasing: {_range(found.by_phrasing)}."
    alone, own = _scores(found.alone), _scores(found.model)
    text += f" Always answering so scores {alone}"
    text += ", as the model does." if alone == own else f"; the model scores {own}."
    if chosen:
        text += " Whether it replies with an option at all is not known here; evaluate shows it."
    return Caution(CONSTANT, model, text, voids=True, numbers=_json(found))


def _in_phrasings(model: str, found: Mapping[str, str], phrasings: int) -> Caution:
    named = [f"{quoted(name)}: {quoted(answer)}" for name, answer in found.items()]
    shown = ", ".join(named[:4]) + ", ..." * (len(named) > 4)
    text = (
        f"its answers hardly depend on the prompt in {len(found)} of "
        f"{counted(phrasings, 'phrasing')} ({shown})."
    )
    return Caution(CONSTANT, model, text, numbers={"phrasings": dict(found), "of": phrasings})


def _json(found: Constant) -> dict[str, object]:
    return {**asdict(found), "usual": list(found.usual)}


def _usual(found: Constant) -> str:
    names = " or ".join(map(quoted, found.usual[:NAMED])) + " ..." * (len(found.usual) > NAMED)
    if found.place is None:
        return names
    place = f"option {found.place + 1}"
    return f"{names} ({place})" if names else place


def _range(shares: Mapping[str, float]) -> str:
    """The lowest and the highest share, with the phrasing that has the lowest."""
    low = min(shares, key=lambda name: shares[name])
    if math.isclose(shares[low], max(shares.values())):
        return f"{_percent(shares[low])} in all {len(shares)}"
    return f"{_percent(shares[low])} ({quoted(low)}) to {_percent(max(shares.values()))}"


def _scores(scores: Mapping[str, float]) -> str:
    """Accuracies as text, such as "0.50 (paired 0.00, rulebreaker 1.00, non_rulebreaker 0.00)"."""
    names = [name for name in scores if name not in ("accuracy", "paired_accuracy")]
    shown = {"paired_accuracy": scores.get("paired_accuracy")} if len(names) > 1 else {}
    shown |= {name: scores[name] for name in names if 1 < len(names) <= FEW_SIDES}
    each = ", ".join(
        f"{one_line(name.removesuffix('_accuracy'), SHOWN_CHARACTERS)} {value:.2f}"
        for name, value in shown.items()
    )
    return f"{scores['accuracy']:.2f}" + (f" ({each})" if each else "")


def quoted(text: str) -> str:
    """A name from the data or the model within a sentence; in quotation marks if not one word."""
    shown = one_line(text, SHOWN_CHARACTERS)
    return shown if re.fullmatch(r"[\w-]+", shown) else f"“{shown}”"


def _percent(share: float) -> str:
    """A share in percent; it is 100% or 0% only if it is exactly 1 or 0."""
    rounded = round(100 * share)
    if share < 1 <= rounded / 100:
        return f"{math.floor(1000 * share) / 10:.1f}%"
    return f"{rounded}%" if rounded or not share else f"{100 * share:.1f}%"


def model_cautions(
    facts: Mapping[str, ModelFacts], differences: Mapping[str, float]
) -> Iterator[Caution]:
    """Cautions about stored texts, about system prompts of templates, and about rounding.

    Args:
        facts: what is known about each model.
        differences: for each model, how much the sides of a pair typically differ, in logits
            (`side_differences`).
    """
    for model, own in facts.items():
        if own.surprise is not None:
            yield from _foreign(model, own.texts, *own.surprise)
        if own.unfitting:
            text = f"of the texts in {own.texts}: {'; '.join(own.unfitting)}. These do not count."
            yield Caution(TEXTS, model, text, numbers={"problems": list(own.unfitting)})
        if own.system_prompt:
            text = (
                f"its chat template writes a system prompt of its own, "
                f"“{one_line(own.system_prompt, 100)}”; --system-prompt replaces it."
            )
            yield Caution(SYSTEM_PROMPT, model, text, numbers={"text": own.system_prompt})
        if own.spacing is not None and model in differences:
            yield from _rounding(model, own, differences[model])


def _foreign(model: str, file: str, mean: float, se: float) -> Iterator[Caution]:
    """That stored thoughts are less probable than what the model itself would write."""
    if mean > SURPRISING and mean > CERTAIN * se:
        text = (
            f"the thoughts in {file} are less probable to it than its own: a token is on average "
            f"{mean:.2f} nats more surprising than those that it samples (0 ± {se:.2f} for its "
            "own), so another model may have written them, or this one with other weights, after "
            "other prompts or at a temperature above 1."
        )
        yield Caution(FOREIGN, model, text, numbers={"mean": mean, "se": se})


def path_cautions(facts: Mapping[str, ModelFacts], methods: Sequence[str]) -> Iterator[Caution]:
    """Cautions about paths through a model that attribution methods leave out.

    Args:
        facts: what is known about each model.
        methods: names of the attribution methods that were measured.
    """
    known = [label for label in methods if name_of(label) in method_names()]
    gradients = [label for label in known if find_method(label).differentiates]
    for model, own in facts.items():
        if gradients and own.reads_tokens_again:
            text = (
                "its later layers read the tokens too (per-layer embeddings), which gradients with "
                f"respect to the input embeddings leave out ({', '.join(gradients)})."
            )
            yield Caution(PATHS, model, text, numbers={"methods": gradients})
        if own.attention_layers and "attention" in methods:
            layers = ", ".join(map(str, own.attention_layers))
            text = (
                f"only its layers {layers} have attention, of which the score of attention is the "
                "mean; what the other layers move between tokens is left out."
            )
            yield Caution(PATHS, model, text, numbers={"layers": list(own.attention_layers)})


def gap_cautions(gaps: pd.DataFrame) -> Iterator[Caution]:
    """Cautions about scores that miss the change in the target that they should add up to.

    Args:
        gaps: the table of `interp.analysis.completeness.completeness_table`.
    """
    for row in gaps[gaps["relative_gap"] >= LARGE_GAP].to_dict("records"):
        label, size, change = str(row["method"]), row["gap_size"], row["difference_size"]
        text = (
            f"the scores of {label} miss the change in the target that they should add up to by "
            f"{_percent(row['relative_gap'])} (by {size:.2g} on average, of {change:.2g}); "
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
            more = ":".join([name, *(f"{each}={own}" for each, own in values.items())])
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
    """For each model, the median over pairs of how far the log-odds of an option differ by side.

    Of a pair's options, the one with the largest difference counts.

    Args:
        options: rows of the option_probabilities table.
        prompts: the prompts table.
    """
    rows = options.dropna(subset="relative_probability")
    rows = rows.merge(prompts[["prompt_id", "pair_id"]], on="prompt_id")
    odds = pd.Series(logit(rows["relative_probability"].to_numpy(dtype=float)), rows.index)
    each = odds.groupby([rows["model"], rows["pair_id"], rows["option"]], sort=False)
    spread = (each.max() - each.min())[each.size() > 1]
    spread = spread[np.isfinite(spread)]
    by_pair = spread.groupby(level=[0, 1], sort=False).max()
    medians: dict[str, float] = by_pair.groupby(level=0, sort=False).median().to_dict()
    return medians


def reach_cautions(
    families: Iterable[pd.DataFrame], clusters_for: Callable[[int], int | None]
) -> Iterator[Caution]:
    """A caution about each model with corrected tests that no effect could make significant.

    Args:
        families: tests that are corrected together, of one model, with clusters and the columns of
            `interp.statistics.decisions.holm`. Of a model with several, the largest is named.
        clusters_for: with how many clusters one of so many tests could be significant; None if
            more clusters would not help.
    """
    largest: dict[str, pd.DataFrame] = {}
    for rows in families:
        tested, model = rows[rows[HOLM_LEAST].notna()], str(rows["model"].iloc[0])
        if out_of_reach(tested).any() and len(tested) > len(largest.get(model, ())):
            largest[model] = tested
    for model, rows in largest.items():
        tests, clusters = len(rows), int(rows["clusters"].max())
        least, fewer = float(rows[HOLM_LEAST].max()), most_tests(float(rows[LEAST].min()))
        more = clusters_for(tests)
        text = (
            f"no test can be significant after the correction over {tests:,} cells, whatever the "
            f"effects: with {counted(clusters, 'cluster')}, p_holm is at least {least:.2g}. That "
            "nothing is significant says nothing about effects. Choose in advance at most "
            f"{fewer:,} cells, such as those of fewer layers"
        )
        text += f", or measure {more:,} clusters." if more else "."
        numbers = {"tests": tests, "clusters": clusters, "p_holm_least": least, "most_tests": fewer}
        yield Caution(REACH, model, text, numbers=numbers)


def sample_cautions(prompts: pd.DataFrame, cluster: str | None = None) -> Iterator[Caution]:
    """Cautions about shared prompts, unequal weights, and samples too small for any test.

    Args:
        prompts: the prompts table; without a column `text`, no prompts are compared.
        cluster: the factor whose values group dependent prompts, if any.
    """
    column = cluster if cluster is not None and cluster in prompts else "pair_id"
    name = "fact" if prompts["side"].eq(FACT_SIDE).all() else column.removesuffix("_id")
    weights = prompts.groupby(column)["weight"].sum().sort_values(ascending=False)
    units, effective = len(weights), effective_number(weights.to_numpy(dtype=float))
    if "text" in prompts:
        each = prompts[[column, "text"]].drop_duplicates()
        shared = int(each.loc[each["text"].duplicated(keep=False), column].nunique())
        if shared:
            text = (
                f"{_units(shared, name)} of {units:,} have a prompt with the same text as a prompt "
                "of another; intervals and tests count them as independent."
            )
            yield Caution(SHARED, "", text, numbers={"units": units, "shared": shared})
    if effective < HALF * units:
        half = int(np.searchsorted(weights.cumsum(), weights.sum() / 2) + 1)
        text = (
            f"Weights differ: {_units(half, name)} of {units:,} hold half of the weight, so means "
            f"are about as precise as those of {effective:.1f} equally weighted ones."
        )
        numbers = {"units": units, "half": half, "effective": effective}
        yield Caution(WEIGHTS, "", text, numbers=numbers)
    if units < FEWEST:
        text = (
            f"Most tests and intervals need at least {_units(FEWEST, name)} and are left out: "
            f"there {'is' if units == 1 else 'are'} {units}."
        )
        yield Caution(UNTESTED, "", text, numbers={"units": units, "least": FEWEST})


def _units(count: int, name: str) -> str:
    if name in ("pair", "fact"):
        return counted(count, name)
    return f"{count:,} {'value' if count == 1 else 'values'} of {name}"
