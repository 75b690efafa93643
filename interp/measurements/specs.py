"""The specs of interp's own measurements, without torch."""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Annotated, ClassVar, Literal, cast

from pydantic import Field, model_validator

from interp import texts
from interp.attribution.registry import (
    DEFAULT_METHODS,
    check_methods,
    find_method,
    method_names,
)
from interp.choices import RESERVED, EdgeMethod, Granularity, Policy, SiteName, VectorSite
from interp.errors import UserError, unknown
from interp.measurements.spec import Indices, Prompts, Spec
from interp.options import FromText
from interp.prompts.prompt import DONORS
from interp.prompts.thought import END, is_part

Names = Annotated[tuple[str, ...], Field(min_length=1)]

Target = Literal["predicted", "gold", "contrast", "margin"]

MOST_DONORS = 256

MAX_NEW_TOKENS = 256

MOST_DRAWS = 1000


def _method_names(text: str) -> tuple[str, ...]:
    return texts.some_of("method", method_names())(text)


class Evaluate(Spec):
    """Answers: probabilities of the options, prediction, correctness."""

    name: ClassVar[str] = "evaluate"
    help: ClassVar[str] = "score answers and print the accuracies"
    examples: ClassVar[tuple[str, ...]] = (
        "evaluate --model organism/llama-deep --limit 960",
        "evaluate --limit all --executor local --workers 4 --out runs/all",
    )
    written: ClassVar[str] = "written to {folder}/accuracy_table.csv"
    measures: ClassVar[str] = "interp.measurements.evaluation:evaluation"
    fills: ClassVar[tuple[str, ...]] = ("answers", "option_probabilities")
    result: ClassVar[str] = "interp.results.answers:Scores"


class SoftScore(Spec):
    """Answers, soft accuracy, and the perplexity of the prompt."""

    name: ClassVar[str] = "soft-score"
    measures: ClassVar[str] = "interp.measurements.evaluation:soft_scores"
    fills: ClassVar[tuple[str, ...]] = ("answers", "option_probabilities", "soft_answers")
    result: ClassVar[str] = "interp.results.answers:Scores"


class Generate(Spec):
    """Texts that a model generates after each prompt, judged by the prompt's own answer."""

    name: ClassVar[str] = "generate"
    help: ClassVar[str] = "generate a text after each prompt and print how many are right"
    examples: ClassVar[tuple[str, ...]] = (
        "generate --model organism/llama-shallow --max-new-tokens 32",
        "generate --temperature 0.7 --sampling-seed 1 --limit 48 --out runs/sampled",
        "generate --model org/model --thinking on --draws 4 --temperature 0.7 --max-new-tokens "
        "2000 --out runs/thoughts",
    )
    written: ClassVar[str] = "written to {folder}/accuracy_table.csv; texts in completions.parquet"
    measures: ClassVar[str] = "interp.measurements.completions:generation"
    fills: ClassVar[tuple[str, ...]] = ("completions", "thoughts")
    shard_prompts: ClassVar[int] = 60
    reads_thoughts: ClassVar[bool] = False
    result: ClassVar[str] = "interp.results.answers:Completions"

    max_new_tokens: Annotated[int, Field(ge=1, le=texts.MOST_TOKENS)] = MAX_NEW_TOKENS
    """most tokens of a text"""
    temperature: Annotated[float, Field(ge=0, allow_inf_nan=False), FromText(texts.number, "T")] = (
        0.0
    )
    """0 takes the most probable token; above 0, tokens are sampled"""
    sampling_seed: Annotated[int, Field(ge=0, le=texts.LARGEST_SEED)] = 0
    """seed of sampling, together with the prompt's id"""
    stop: tuple[Annotated[str, Field(min_length=1), FromText(str, "TEXT")], ...] = ()
    """texts that end the generation; they and the text after them are omitted"""
    draws: Annotated[int, Field(ge=1, le=MOST_DRAWS)] = 1
    """with --thinking on: number of thoughts on each prompt"""
    force_end: bool = False
    """with --thinking on: write the mark that ends a thought where the thought has no end, and
    generate the answer there"""

    @model_validator(mode="after")
    def _check_draws(self) -> "Generate":
        if self.draws > 1 and not self.temperature:
            raise UserError(
                f"{self.draws} draws without a temperature would all be the same text; give a "
                "temperature above 0, such as 0.7, or omit the draws"
            )
        return self


class Attribute(Spec):
    """How much of each answer comes from each segment of its prompt."""

    name: ClassVar[str] = "attribute"
    help: ClassVar[str] = (
        "attribute answers to the segments of the prompts and print the attribution table"
    )
    examples: ClassVar[tuple[str, ...]] = (
        "attribute --model organism/llama-shallow organism/gemma2",
        "attribute --model org/model --methods input_gradient --limit all --out runs/model",
    )
    written: ClassVar[str] = "written to {folder}: {tables}"
    measures: ClassVar[str] = "interp.measurements.attribution:attribution"
    fills: ClassVar[tuple[str, ...]] = (
        "answers",
        "option_probabilities",
        "segment_scores",
        "tokens",
        "token_scores",
    )
    optional: ClassVar[Mapping[str, str]] = {"tokens": "keep_tokens", "token_scores": "keep_tokens"}
    result: ClassVar[str] = "interp.results.attributions:Attributions"

    methods: Annotated[tuple[str, ...], FromText(_method_names, "NAME")] = DEFAULT_METHODS
    """attribution methods; `interp methods` lists them"""
    target: Target = "predicted"
    """the attributed quantity: the predicted token; the gold answer; the contrast of the two
    options that the data contrasts, or else of the gold answer and the most probable other one; or
    the margin, the model's own answer over the other contrasted one, or else over the most probable
    other one, each in all its forms, as `effects` measures it"""
    keep_tokens: bool = False
    """also keep each token and its score"""

    @model_validator(mode="after")
    def _check_methods(self) -> "Attribute":
        check_methods(self.methods)
        return self

    def arranged(self, prompts: Prompts) -> Prompts:
        """The prompts, with donors if a method reads any."""
        if not any(find_method(name).donors for name in self.methods):
            return prompts
        from interp.prompts.mixing import with_donors

        return cast("Prompts", with_donors(prompts, count=DONORS))

    def modules(self) -> Sequence[str]:
        """The modules of the measurement and of its methods."""
        own = (find_method(name).implementation.partition(":")[0] for name in self.methods)
        return (*super().modules(), *own)


class Reinitialized(Attribute):
    """Attribution of the same prompts by the same architecture before training.

    A method whose scores still agree with the trained model's effects reads the prompt, not the
    model (Adebayo et al. 2018).
    """

    name: ClassVar[str] = "attribute-reinitialized"
    help: ClassVar[str] = ""
    measures: ClassVar[str] = "interp.measurements.attribution:reinitialized_attribution"
    own_answers: ClassVar[bool] = False


class Effects(Spec):
    """The effect of each segment on the answer, measured by donors that replace it."""

    name: ClassVar[str] = "effects"
    help: ClassVar[str] = (
        "replace segments by those of other prompts and print the effect of each on the answer"
    )
    examples: ClassVar[tuple[str, ...]] = (
        "effects --model organism/phi3-deep --limit 48",
        "effects --segments premise1 premise2 --donors 16 --out runs/effects",
    )
    written: ClassVar[str] = (
        "written to {folder}/segment_effect_table.csv; prompt by prompt in segment_effects.parquet"
    )
    measures: ClassVar[str] = "interp.measurements.effects:effects"
    fills: ClassVar[tuple[str, ...]] = ("segment_effects", "coalition_values")
    shard_prompts: ClassVar[int] = 60
    result: ClassVar[str] = "interp.results.attributions:SegmentEffects"

    segments: Annotated[Names | None, FromText(texts.names, "NAME")] = None
    """the segments to replace, such as premise1,premise2 or thought1; the others stay (default: all
    for which the system has donors, and all sentences of a thought if there are several draws)"""
    donors: Annotated[int, Field(ge=1, le=MOST_DONORS)] = DONORS
    """number of donors for each prompt, from other instances of its template"""

    def arranged(self, prompts: Prompts) -> Prompts:
        """The prompts with their donors."""
        from interp.attribution.games import check_segments
        from interp.prompts.mixing import with_donors

        # Donors for the sentences of a thought are other thoughts of the model.
        own = self.segments and tuple(name for name in self.segments if not is_part(name))
        arranged = with_donors(prompts, count=self.donors, segments=own)
        for donor in arranged[0].donors[:1]:
            check_segments(arranged[0], tuple(donor.segments))
        return cast("Prompts", arranged)


class Thoughts(Spec):
    """How much of the answers of a model that thinks passes through its thoughts."""

    name: ClassVar[str] = "thoughts"
    help: ClassVar[str] = (
        "exchange premises and thoughts and print how much of the answers passes through the "
        "thoughts"
    )
    examples: ClassVar[tuple[str, ...]] = (
        "thoughts --model organism/thought-mixed-50 --thinking on --limit 48",
        "thoughts --model org/model --thinking on --thoughts runs/thoughts --draws 8 "
        "--max-new-tokens 2000 --out runs/mediation",
    )
    written: ClassVar[str] = (
        "written to {folder}: {tables}; {program} report {folder} makes the page"
    )
    measures: ClassVar[str] = "interp.measurements.thought_effects:thought_effects"
    fills: ClassVar[tuple[str, ...]] = ("thought_answers", "thought_effects", "sentence_effects")
    shard_prompts: ClassVar[int] = 12
    reads_thoughts: ClassVar[bool] = False
    result: ClassVar[str] = "interp.results.thoughts:ThoughtEffects"

    draws: Annotated[int, Field(ge=2, le=MOST_DRAWS)] = 4
    """number of thoughts on each prompt and each changed prompt"""
    donors: Annotated[int, Field(ge=1, le=MOST_DONORS)] = 1
    """number of donors for each prompt, from other instances of its template"""
    segments: Annotated[Names | None, FromText(texts.names, "NAME")] = None
    """the segments to exchange, such as premise1,premise2; the others stay (default: all for which
    the system has donors)"""
    temperature: Annotated[float, Field(gt=0, allow_inf_nan=False), FromText(texts.number, "T")] = (
        1.0
    )
    """temperature of sampled thoughts"""
    sampling_seed: Annotated[int, Field(ge=0, le=texts.LARGEST_SEED)] = 0
    """seed of sampling, together with the prompt"""
    max_new_tokens: Annotated[int, Field(ge=1, le=texts.MOST_TOKENS)] = MAX_NEW_TOKENS
    """most tokens of a thought"""

    def arranged(self, prompts: Prompts) -> Prompts:
        """The prompts with their donors."""
        from interp.prompts.mixing import with_donors

        return cast("Prompts", with_donors(prompts, count=self.donors, segments=self.segments))


class Patch(Spec):
    """The effect on the answer of activations that come from the other prompt of a pair."""

    name: ClassVar[str] = "patch"
    help: ClassVar[str] = (
        "patch activations between the prompts of pairs and print the effects by role"
    )
    examples: ClassVar[tuple[str, ...]] = (
        "patch --model organism/phi3-deep --limit 48",
        "patch --sites z attn_out --layers 0-2 --granularity position --limit 24",
    )
    written: ClassVar[str] = (
        "written to {folder}: intervals in effect_table.csv; {program} report {folder} draws the "
        "effects"
    )
    measures: ClassVar[str] = "interp.measurements.patching:patching"
    fills: ClassVar[tuple[str, ...]] = ("pairs", "patches", "node_sets")
    optional: ClassVar[Mapping[str, str]] = {"node_sets": "sets"}
    shard_prompts: ClassVar[int] = 60
    excluded_from_identity: ClassVar[frozenset[str]] = frozenset({"remote"})
    result: ClassVar[str] = "interp.results.patches:Patches"

    sites: Annotated[tuple[SiteName, ...], Field(min_length=1), FromText(texts.names, "NAME")] = (
        "resid_pre",
    )
    """resid_pre, resid_mid, resid_post, attn_out, mlp_out, z, q, k, v, pattern"""
    granularity: Granularity = "role"
    """the tokens that are patched together: those of each role or segment, each position alone, or
    all tokens"""
    direction: Literal["denoising", "noising"] = "denoising"
    """denoising: clean activations into the corrupt prompt; noising: the reverse"""
    clean: str | None = None
    """the clean side of a pair (default: the system's first)"""
    policy: Policy = "last"
    """how to align differing spans with unequal numbers of tokens: by the last token, by the mean,
    or all to refuse such pairs"""
    layers: Annotated[Indices | None, FromText(texts.numbers, "N")] = None
    """which layers, such as 0,2,5 or 0-2 (default: all)"""
    heads: Annotated[Indices | None, FromText(texts.numbers, "N")] = None
    """which heads, such as 0,2,5 or 0-2 (default: all)"""
    estimate: Literal["gradient", "integrated"] | None = None
    """estimate all effects from one backward pass (gradient) or five (integrated) instead of
    running each patch"""
    verify: Annotated[int, Field(ge=0, le=texts.MOST_TOKENS)] = 0
    """run the K cells with the largest estimates of each pair exactly"""
    guarantee: Annotated[float | None, Field(gt=0, lt=1), FromText(texts.share, "P")] = None
    """bound the effects that are only estimated: with probability P, such as 0.95, no effect at a
    site exceeds its bound in a pair that is not checked"""
    checked: Annotated[float, Field(gt=0, lt=1), FromText(texts.share, "SHARE")] = 0.25
    """share of the pairs whose cells are all run exactly, to check a guarantee"""
    sets: bool = False
    """also patch growing sets of cells at once, in order of their effects and in a random order"""
    control: bool = False
    """also run each patch from a control: the same prompt about other entities, with the same
    correct answer"""
    backend: Literal["native", "transformer-lens", "nnsight"] = "native"
    """native, transformer-lens or nnsight"""
    remote: bool = False
    """run a hub model on NDIF's servers, by nnsight"""

    @model_validator(mode="after")
    def _check_together(self) -> "Patch":
        if self.verify and self.estimate is None:
            raise UserError(
                "verify is given, but nothing is estimated, and exact patching needs no "
                "verification; give an estimate too, or omit verify"
            )
        if self.guarantee is not None and (self.estimate is None or self.verify):
            raise UserError(
                "a guarantee bounds the errors of estimates by pairs whose cells are all run "
                "exactly; give an estimate with it, and omit verify"
            )
        if self.sets and (self.backend != "native" or "pattern" in self.sites):
            raise UserError(
                "sets of cells are patched natively, at sites other than pattern; got "
                f"the backend {self.backend} and the sites {', '.join(self.sites)}. Omit the "
                "backend, and give z for pattern"
            )
        if self.remote and self.backend != "nnsight":
            raise UserError(
                f"the backend {self.backend} does not run remotely; give the backend nnsight"
            )
        return self

    def arranged(self, prompts: Prompts) -> Prompts:
        """The prompts pair by pair, the clean one before the corrupt one; with donors for controls.

        Raises:
            UserError: the prompts are not pairs, or have no donors from which to make controls.
        """
        from interp.patching.pairs import in_pairs
        from interp.prompts.mixing import with_donors

        pairs = in_pairs(prompts, clean=self.clean)
        return cast("Prompts", with_donors(pairs, count=1) if self.control else pairs)


class Edges(Spec):
    """The effect on the answer of each edge between the components of a model."""

    name: ClassVar[str] = "edges"
    help: ClassVar[str] = (
        "score the edges between heads, MLPs, input and logits and print the largest"
    )
    examples: ClassVar[tuple[str, ...]] = (
        "edges --model organism/llama-deep --limit 48",
        "edges --methods gradient integrated exact --limit 24 --out runs/edges",
    )
    written: ClassVar[str] = (
        "written to {folder}: all edges in edge_table.csv; pair by pair in edges.parquet"
    )
    measures: ClassVar[str] = "interp.measurements.edges:edges"
    fills: ClassVar[tuple[str, ...]] = ("pairs", "edges")
    shard_prompts: ClassVar[int] = 24
    result: ClassVar[str] = "interp.results.edges:EdgeEffects"

    methods: Annotated[
        tuple[EdgeMethod, ...], Field(min_length=1), FromText(texts.names, "NAME")
    ] = ("integrated",)
    """gradient, integrated, activations, softmax and gim estimate all edges from a few backward
    passes; exact runs the model once per edge"""
    clean: str | None = None
    """the side of a pair whose prompt is run; the other side's activations enter by the edges
    (default: the system's first)"""
    policy: Policy = "last"
    """where differing spans have unequal numbers of tokens: last, mean, or all to refuse such
    pairs"""

    def arranged(self, prompts: Prompts) -> Prompts:
        """The prompts pair by pair, the clean one before the corrupt one.

        Raises:
            UserError: the prompts are not pairs.
        """
        from interp.patching.pairs import in_pairs

        return cast("Prompts", in_pairs(prompts, clean=self.clean))


class Activations(Spec):
    """Answers, and the vectors at some sites and tokens of each prompt."""

    name: ClassVar[str] = "activations"
    help: ClassVar[str] = (
        "write activations at chosen sites and tokens as safetensors, with an index as Parquet"
    )
    examples: ClassVar[tuple[str, ...]] = (
        "activations --model organism/phi3-deep --roles premise2 last --limit 48",
        "activations --sites z mlp_out --layers 0-2 --roles premise1 --tokens mean --out "
        "runs/vectors",
    )
    written: ClassVar[str] = (
        "written to {folder}: activations.parquet gives the tensor and the row of each vector"
    )
    measures: ClassVar[str] = "interp.measurements.activations:activations"
    fills: ClassVar[tuple[str, ...]] = ("answers", "activation_vectors")
    shard_prompts: ClassVar[int] = 60
    unmerged: ClassVar[frozenset[str]] = frozenset({"activation_vectors"})
    result: ClassVar[str] = "interp.export.activations:ActivationVectors"

    sites: Annotated[tuple[VectorSite, ...], Field(min_length=1), FromText(texts.names, "NAME")] = (
        "resid_post",
    )
    """resid_pre, resid_mid, resid_post, attn_out, mlp_out, z, q, k, v"""
    roles: Annotated[Names | None, FromText(texts.names, "NAME")] = None
    """segments and roles whose tokens are read, such as premise2,last, or all for the whole prompt;
    a prompt without one has no vector for it (default: the token at which the answer is read)"""
    tokens: Literal["last", "mean", "all"] = "last"
    """tokens of a segment or role: the last one, the mean over all, or all, one vector each"""
    layers: Annotated[Indices | None, FromText(texts.numbers, "N")] = None
    """which layers, such as 0,2,5 or 0-2 (default: all)"""

    def arranged(self, prompts: Prompts) -> Prompts:
        """The prompts as they are.

        Raises:
            UserError: no prompt has a requested segment or role.
        """
        if self.roles is not None:
            named = chain.from_iterable((*prompt.segments, *prompt.roles) for prompt in prompts)
            known = dict.fromkeys((*RESERVED, *named))
            for name in self.roles:
                if name not in known and name != END and not is_part(name):
                    raise UserError(unknown("segment or role", name, known))
        return prompts
