"""The calls for notebooks: measure prompts in memory and get tables."""

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd
import pyarrow as pa

from interp.analysis.accuracy import accuracy_table
from interp.analysis.attribution_table import attribution_table
from interp.choices import METHODS
from interp.console import Progress
from interp.errors import UserError, shortened
from interp.measurements.core import Measurement, PromptRows
from interp.measurements.patching import patching
from interp.measurements.prompts import attribution, scoring
from interp.models.model import Model
from interp.patching.pairs import in_pairs
from interp.prompts.prompt import Prompt
from interp.prompts.prompt_set import prompt_row
from interp.report.notebook import attributions_html, scores_html
from interp.runs.shards import SHARD_PROMPTS


@dataclass(frozen=True, slots=True)
class Scores:
    """Answers of one model to prompts."""

    prompts: pd.DataFrame
    """The prompts table: one row a prompt, with pair_id, side and one column a factor."""
    answers: pd.DataFrame
    """The answers table (`interp.tables`): one row per prompt."""
    option_probabilities: pd.DataFrame
    """The option_probabilities table: one row per prompt and option."""

    def to_frame(self) -> pd.DataFrame:
        """One row a prompt."""
        return self.answers

    def summary(self) -> pd.DataFrame:
        """One row: paired accuracy, accuracy of each side, number of prompts."""
        return accuracy_table(self.answers, self.prompts, _sides(self.prompts))

    def _repr_html_(self) -> str | None:
        # Without prompts there is nothing to sum up, and the notebook shows the plain text.
        return None if self.answers.empty else scores_html(self.summary())


@dataclass(frozen=True, slots=True)
class Attributions:
    """Answers of one model to prompts, and what they are attributed to."""

    prompts: pd.DataFrame
    """The prompts table: one row a prompt, with pair_id, side and one column a factor."""
    answers: pd.DataFrame
    """The answers table: one row per prompt."""
    option_probabilities: pd.DataFrame
    """The option_probabilities table: one row per prompt and option."""
    attributions: pd.DataFrame
    """The attributions table: one row a prompt and method."""
    token_scores: pd.DataFrame | None = None
    """The token_scores table: one row a prompt, method and token; None if not asked for."""

    def to_frame(self) -> pd.DataFrame:
        """One row a prompt and method."""
        return self.attributions

    def summary(self) -> pd.DataFrame:
        """One row: mean and standard deviation of each method's ratio, next to the accuracies."""
        sides = _sides(self.prompts)
        return attribution_table(self.attributions, self.answers, self.prompts, sides)

    def _repr_html_(self) -> str | None:
        if self.answers.empty:
            return None
        return attributions_html(
            self.summary(),
            prompts=self.prompts,
            answers=self.answers,
            token_scores=self.token_scores,
        )


@dataclass(frozen=True, slots=True)
class Patches:
    """What patches did to the answers of one model."""

    patches: pd.DataFrame
    """The patches table: one row a pair, method and cell."""
    pairs: pd.DataFrame
    """The pairs table: one row a pair."""

    def to_frame(self) -> pd.DataFrame:
        """One row a pair, method and cell."""
        return self.patches


def score(model: Model, prompts: Sequence[Prompt], *, batch_tokens: int | None = None) -> Scores:
    """Answers of a model: probabilities of the options, prediction, correctness.

    Args:
        model: from `load_model`, or `Model(name, hf, tokenizer)`.
        prompts: from `load_prompts`, or any sequence of prompts.
        batch_tokens: budget of tokens a batch, padding included.

    Raises:
        UserError: no model, no list of prompts with ids of their own, a prompt that the model
            cannot read, answers that cannot be told apart.
    """
    _check(model, prompts)
    tables = measure(scoring(model, batch_tokens=batch_tokens), prompts)
    return Scores(_prompts_table(prompts), **tables)


def attribute(
    model: Model,
    prompts: Sequence[Prompt],
    *,
    methods: Sequence[str] = METHODS,
    target: str = "predicted",
    backend: str = "native",
    token_scores: bool = False,
    batch_tokens: int | None = None,
) -> Attributions:
    """Answers of a model, and how much of each answer comes from either premise.

    Args:
        model: from `load_model`, or `Model(name, hf, tokenizer)`.
        prompts: from `load_prompts`, or any sequence of prompts with premise1 and premise2.
        methods: some of "gradient" (input gradient) and "attention"; and by captum, prompt by
            prompt: "integrated_gradients", "input_x_gradient", "deep_lift", "occlusion".
        target: what is attributed: the "predicted" token, the "gold" answer, or the "contrast" of
            the data's two options, by default of gold and the likeliest other.
        backend: "native" (one pass for both methods) or "inseq" (the paper's implementation).
        token_scores: also keep the score of every token.
        batch_tokens: budget of tokens a batch, padding included.

    Raises:
        UserError: no model, no list of prompts with ids of their own, an unknown choice, a prompt
            without premises or that the model cannot read, answers that cannot be told apart.
    """
    _check(model, prompts)
    _check_lists(methods=methods)
    measurement = attribution(
        model,
        methods=methods,
        target=target,
        backend=backend,
        token_scores=token_scores,
        batch_tokens=batch_tokens,
    )
    return Attributions(_prompts_table(prompts), **measure(measurement, prompts))


def patch(
    model: Model,
    prompts: Sequence[Prompt],
    *,
    sites: Sequence[str] = ("resid_pre",),
    granularity: str = "role",
    direction: str = "denoising",
    policy: str = "last",
    clean: str | None = None,
    layers: Sequence[int] | None = None,
    heads: Sequence[int] | None = None,
    estimate: str | None = None,
    verify: int = 0,
    backend: str = "native",
    remote: bool = False,
    batch_tokens: int | None = None,
) -> Patches:
    """The effect on a model's answers of activations that come from each prompt's counterpart.

    Args:
        model: from `load_model`, or `Model(name, hf, tokenizer)`.
        prompts: both sides of pairs, in any order.
        sites: some of `interp.models.sites.SITES`, such as "resid_pre", "attn_out", "z".
        granularity: what is patched at once: the tokens of a "role" or of a "segment", each
            "position" alone, or "all" tokens.
        direction: "denoising" (clean activations into the corrupt prompt) or "noising".
        policy: where differing spans have unequal numbers of tokens: "last", "mean" or "all"
            (`interp.patching.alignment.POLICIES`).
        clean: the side whose prompts are clean; that of the first prompt if not given.
        layers: the layers to patch; all if not given.
        heads: the heads to patch, of sites that have heads; all if not given.
        estimate: "gradient" or "integrated" to estimate the effects instead of running each patch.
        verify: run so many of the cells with the largest estimates exactly, for each pair.
        backend: "native", "transformer-lens" or "nnsight".
        remote: run a model of the hub on NDIF's servers, by nnsight.
        batch_tokens: budget of tokens in one forward pass; it shrinks when memory ends.

    Raises:
        UserError: no model, no list of prompts with ids of their own, an unknown choice, prompts
            that are no pairs, pairs that the policy does not
            align, a site, layer or head that the model lacks.
    """
    _check(model, prompts)
    _check_lists(sites=sites, layers=layers, heads=heads)
    measurement = patching(
        model,
        sites=sites,
        granularity=granularity,
        direction=direction,
        policy=policy,
        layers=layers,
        heads=heads,
        estimate=estimate,
        verify=verify,
        backend=backend,
        remote=remote,
        batch_tokens=batch_tokens,
    )
    return Patches(**measure(measurement, in_pairs(prompts, clean=clean)))


def measure(measurement: Measurement, prompts: Sequence[Prompt]) -> dict[str, pd.DataFrame]:
    """The tables of a measurement of prompts, in memory, by name."""
    rows: PromptRows = {table: [] for table in measurement.tables}
    title = f"{measurement.name} {measurement.model.name}"
    with Progress(title, total=len(prompts)) as progress:
        for start in range(0, len(prompts), SHARD_PROMPTS):
            end = min(start + SHARD_PROMPTS, len(prompts))
            chunk = list(prompts[start:end])
            part = measurement(chunk, done=progress.advance)
            for table, table_rows in part.items():
                rows[table] += table_rows
    return {
        table: pa.Table.from_pylist(rows[table], schema=schema).to_pandas()
        for table, schema in measurement.tables.items()
    }


def _check(model: object, prompts: object) -> None:
    """Refuse what would fail far from here, or be measured without a word."""
    if not isinstance(model, Model):
        raise UserError(
            f"model is {_described(model)}; expected a Model, as interp.load_model gives it"
        )
    if isinstance(prompts, str) or not isinstance(prompts, Sequence):
        raise UserError(
            f"prompts is {_described(prompts)}; expected a list of prompts, as "
            "interp.load_prompts gives it"
        )
    ids: set[str] = set()
    for place, prompt in enumerate(prompts):
        if not isinstance(prompt, Prompt):
            raise UserError(f"prompts[{place}] is {_described(prompt)}; expected a Prompt")
        if prompt.id in ids:
            raise UserError(
                f"prompts[{place}] has the id {shortened(prompt.id)!r}, as one before it; give "
                "each prompt an id of its own"
            )
        ids.add(prompt.id)


def _check_lists(**arguments: object) -> None:
    """Refuse a string or a number where a list belongs."""
    for name, value in arguments.items():
        if value is not None and (isinstance(value, str) or not isinstance(value, Sequence)):
            raise UserError(
                f"{name} is {_described(value)}; expected a list, such as [{value!r:.60}]"
            )


def _described(value: object) -> str:
    return f"{shortened(repr(value), 100)}, a {type(value).__name__}"


def _prompts_table(prompts: Sequence[Prompt]) -> pd.DataFrame:
    return pd.DataFrame([prompt_row(prompt) for prompt in prompts])


def _sides(prompts: pd.DataFrame) -> tuple[str, ...]:
    return tuple(prompts["side"].unique())
