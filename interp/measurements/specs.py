"""The specs of interp's own measurements; this module does not import torch."""

from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, get_args

from pydantic import Field, JsonValue, model_validator

from interp import choices, texts
from interp.attribution import registry
from interp.errors import UserError, shortened, unknown
from interp.measuring.spec import Indices, Prompts, Spec
from interp.options import FromText, Options
from interp.plugins import BACKENDS, named, plugins
from interp.prompts.prompt import DONORS, Prompt
from interp.prompts.thought import END, is_part
from interp.variants import WRITTEN, FromVariants, NoOptions, Variants

if TYPE_CHECKING:
    from interp.prompts.prompt_set import PromptSet
    from interp.prompts.source import PromptSource

Names = Annotated[tuple[str, ...], Field(min_length=1)]

Methods = Annotated[
    tuple[str, ...], FromVariants(registry.ATTRIBUTION.some, WRITTEN, registry.ATTRIBUTION)
]

Temperature = Annotated[float, Field(allow_inf_nan=False), FromText(texts.number, "T")]

Target = Literal["predicted", "gold", "contrast", "margin"]

NATIVE = "native"
"""The toolkit's own backend of patching."""

MOST_DONORS = 256

MAX_NEW_TOKENS = 256

MOST_DRAWS = 1000


class Points(Options):
    """The option of estimates that average over points between base and source."""

    steps: Annotated[int, Field(ge=1, le=1000)] = choices.INTEGRATION_STEPS
    """number of points: the midpoints of equal intervals"""


def _options_of(name: str) -> type[Options]:
    return Points if name in ("integrated", "activations") else NoOptions


PATCHING = Variants("estimate", lambda: get_args(choices.PatchEstimate), _options_of)
"""The estimates of patching."""

EDGES = Variants("method", lambda: get_args(choices.EdgeMethod), _options_of)
"""The methods of edges."""


def _backend(text: str) -> str:
    return texts.one_of("backend", (NATIVE, *plugins(BACKENDS)))(text)


class ReadsAnswers(Options):
    """The option of measurements that read answers of any length."""

    answers: choices.AnswerReading = "first"
    """first: read each option by its first token or, if two options of a prompt begin with the same
    token, as a whole text; whole: read every option as a whole text
    """


class Evaluate(ReadsAnswers, Spec):
    """Answers: probabilities of the options, prediction, correctness.

    Changed prompts are measured beside the prompts, as baselines for their answers.
    """

    name = "evaluate"
    help = "score answers and print the accuracies"
    examples = (
        "evaluate --model organism/llama-deep --limit 960",
        "evaluate --limit all --executor local --workers 4 --out runs/all",
        "evaluate --model org/model --content-free --without-segments --swap-options",
        "evaluate --limit all --answers-from vllm=answers.jsonl log.eval --out runs/stored",
    )
    written = "written to {folder}/accuracy_table.csv"
    measures = "interp.measurements.answers.evaluation:evaluation"
    fills = ("answers", "option_probabilities", "changed_options")
    optional: ClassVar[Mapping[str, str]] = {"changed_options": "changes_prompts"}
    given = "interp.measurements.given:Evaluated"
    result = "interp.measurements.answers.show:Scores"

    normalize: choices.Normalization = "none"
    """with --answers whole: compare options by their log-probability divided by their number of
    tokens, or of bytes of UTF-8 as in lm-eval's acc_bytes (default: not divided, as in its acc)"""
    content_free: bool = False
    """also measure prompts whose content is replaced by N/A, by nothing and by [MASK], and show the
    accuracy of choices that are calibrated by them"""
    without_segments: bool = False
    """also measure each prompt without each of its segments, and without all premises"""
    without_premises: bool = False
    """also measure each prompt without all of its premises; always if there are demonstrations
    (--shots), from which a model may learn to tell the sides apart without reading the premises"""
    swap_options: bool = False
    """also measure each prompt whose text lists its options with this list in reverse order"""

    @model_validator(mode="after")
    def _check_normalize(self) -> "Evaluate":
        if self.normalize != "none" and self.answers != "whole":
            raise UserError(
                f"got --normalize {self.normalize}, but first tokens have no length; add --answers "
                "whole, or omit normalize"
            )
        return self

    @property
    def changes_prompts(self) -> bool:
        """Whether changed prompts are measured."""
        return self.content_free or self.reads_no_premises or self.swap_options

    @property
    def reads_no_premises(self) -> bool:
        """Whether prompts are also measured without their premises."""
        return self.without_segments or self.without_premises

    def fitted(self, prompts: Sequence[Prompt]) -> "Evaluate":
        """With demonstrations, prompts that have premises are also measured without them."""
        from interp.prompts.changes import without_premises

        shown = (prompt for prompt in prompts if prompt.messages.demonstrations)
        if self.reads_no_premises or not any(map(list, map(without_premises, shown))):
            return self
        return self.model_copy(update={"without_premises": True})

    def prompts_of(self, source: "PromptSource") -> "PromptSet":
        """The prompts of a source."""
        prompts = source.load()
        if not any(prompt.answer.scored_by_next_token for prompt in prompts):
            raise UserError(
                f"the answers to the prompts of {prompts.system} can only be judged in generated "
                "text; use generate with the same options"
            )
        return self.arranged(prompts)

    def arranged(self, prompts: Prompts) -> Prompts:
        """The prompts, with a donor, which tells the content, if content is replaced."""
        if not self.changes_prompts:
            return prompts
        from interp.prompts.changes import swapped_options
        from interp.prompts.mixing import with_donors

        arranged = with_donors(prompts, count=1) if self.content_free else prompts
        if self.content_free and not any(prompt.donors for prompt in arranged):
            raise UserError(
                "the prompts have no donors, which tell their content from their template; "
                "expected prompts of a system with donors, or two or more of your own pairs"
            )
        if self.without_segments and not any(prompt.segments for prompt in prompts):
            raise UserError(
                "the prompts have no segment that could be left out; mark some in the text, as "
                "<premise1>It rains.</premise1>, or give each a column"
            )
        if self.swap_options and not any(map(list, map(swapped_options, prompts))):
            raise UserError(
                "no prompt lists its options in its text, so their order cannot be swapped; "
                'expected a list such as "Answer Yes or No."'
            )
        return arranged


class SoftScore(ReadsAnswers, Spec):
    """Answers, soft accuracy, and the perplexity of the prompt."""

    name = "soft-score"
    measures = "interp.measurements.answers.evaluation:soft_scores"
    fills = ("answers", "option_probabilities", "soft_answers")
    result = "interp.measurements.answers.show:Scores"


class Generate(Spec):
    """Text that a model generates after each prompt, judged by the rules of the prompt's answer."""

    name = "generate"
    help = "generate text after each prompt and print the share of correct answers"
    examples = (
        "generate --model organism/llama-shallow --max-new-tokens 32",
        "generate --temperature 0.7 --sampling-seed 1 --limit 48 --out runs/sampled",
        "generate --model org/model --thinking on --draws 4 --temperature 0.7 --max-new-tokens "
        "2000 --out runs/thoughts",
    )
    written = "written to {folder}/accuracy_table.csv; texts in completions.parquet"
    measures = "interp.measurements.answers.generation:generation"
    fills = ("completions", "thoughts")
    shard_prompts = 60
    reads_thoughts = False
    given = "interp.measurements.given:Completed"
    result = "interp.measurements.answers.show:Completions"

    max_new_tokens: Annotated[int, Field(ge=1, le=texts.MOST_TOKENS)] = MAX_NEW_TOKENS
    """largest number of generated tokens"""
    temperature: Annotated[Temperature, Field(ge=0)] = 0.0
    """at 0, the most probable token is taken; above 0, tokens are sampled"""
    sampling_seed: Annotated[int, Field(ge=0, le=texts.LARGEST_SEED)] = 0
    """seed for sampling, combined with the prompt's id"""
    stop: tuple[Annotated[str, Field(min_length=1), FromText(str, "TEXT")], ...] = ()
    """strings that end the generation; they and any text after them are omitted"""
    draws: Annotated[int, Field(ge=1, le=MOST_DRAWS)] = 1
    """with --thinking on: number of thoughts on each prompt"""
    force_end: bool = False
    """with --thinking on: append the end mark to a thought that did not end, and then generate the
    answer"""

    @model_validator(mode="after")
    def _check_draws(self) -> "Generate":
        if self.draws > 1 and not self.temperature:
            raise UserError(
                f"{self.draws} draws at temperature 0 would all be identical; set a temperature "
                "above 0, such as 0.7, or omit draws"
            )
        return self


class Stored(Spec):
    """Texts that another tool stored, judged by the rules of the prompt's answer.

    `evaluate --answers-from` writes its runs; no model is loaded.
    """

    name = "stored"
    measures = "interp.measurements.answers.stored:needs_no_model"
    fills = ("completions",)
    reads_thoughts = False
    given = "interp.measurements.given:Completed"
    result = "interp.measurements.answers.show:Completions"


class Attribute(ReadsAnswers, Spec):
    """The contribution of each segment of a prompt to the answer."""

    name = "attribute"
    help = "attribute answers to the segments of the prompts and print the attribution table"
    examples = (
        "attribute --model organism/llama-shallow organism/gemma2",
        "attribute --model org/model --methods input_gradient --limit all --out runs/model",
    )
    written = (
        "written to {folder}: {tables}; on which segments answers depend, {program} effects shows"
    )
    measures = "interp.measurements.attribution.measure:attribution"
    fills = ("answers", "option_probabilities", "segment_scores", "tokens", "token_scores")
    optional: ClassVar[Mapping[str, str]] = {"tokens": "keep_tokens", "token_scores": "keep_tokens"}
    derives = (
        "interp.measurements.attribution.ratios:RATIOS",
        "interp.measurements.attribution.segments:SEGMENTS",
        "interp.measurements.attribution.segments:DECISIVE",
    )
    given = "interp.measurements.given:Attributed"
    result = "interp.measurements.attribution.show:Attributions"

    methods: Methods = registry.DEFAULT_METHODS
    """attribution methods, with options such as integrated_gradients:steps=50; `interp methods`
    lists both. A method with other options is another method of the run"""
    target: Target = "predicted"
    """the attributed quantity. predicted: the predicted token (of whole answers, the option that
    the predicted tokens spell); gold: the gold answer; contrast: the
    difference between the two options that the data contrasts or, without a contrast, between the
    gold answer and the most probable other option; margin: the difference that `effects` measures,
    between the model's own answer and the other contrasted option or, without a contrast, the most
    probable other option, each in all spellings
    """
    keep_tokens: bool = False
    """also keep each token and its score"""

    def arranged(self, prompts: Prompts) -> Prompts:
        """The prompts, with donors if a method uses any."""
        if not self.keep_tokens and not any(prompt.segments for prompt in prompts):
            raise UserError(
                "the prompts have no segments to which answers could be attributed; mark them in "
                "the text, as <premise1>It rains.</premise1>, give each a column, or attribute "
                "answers to tokens (--keep-tokens)"
            )
        if not any(registry.find_method(name).donors for name in self.methods):
            return prompts
        from interp.prompts.mixing import with_donors

        return with_donors(prompts, count=DONORS)

    def whole_layers(self) -> str:
        """A method that reads attention."""
        names = (name for name in self.methods if registry.find_method(name).reads_heads)
        return next((f"the method {name}" for name in names), "")

    def modules(self) -> Sequence[str]:
        """The modules of the measurement and of its methods."""
        return (*super().modules(), *chain.from_iterable(map(registry.modules_of, self.methods)))


class Reinitialized(Attribute):
    """Attributions of a model's architecture with random instead of trained weights.

    A method whose scores still agree with the trained model's effects reflects the prompt rather
    than the model (Adebayo et al. 2018).
    """

    name = "attribute-reinitialized"
    help = ""
    measures = "interp.measurements.attribution.measure:reinitialized_attribution"
    own_answers = False

    def whole_layers(self) -> str:
        """Drawing random weights."""
        return "a model with random weights"


class OfPairs(Options):
    """The option of measurements that exchange something between the two prompts of a pair."""

    sides: Annotated[tuple[str, ...] | None, FromText(texts.name, "SIDE")] = None
    """two sides, if the groups have more than two: the clean one first (default: all sides)"""

    @model_validator(mode="after")
    def _check_sides(self) -> "OfPairs":
        if self.sides is not None and (len(self.sides) != 2 or len(set(self.sides)) != 2):
            raise UserError(
                f"the sides are {shortened(', '.join(self.sides), 100) or 'none'}; expected two "
                "different ones"
            )
        return self


class Effects(ReadsAnswers, OfPairs, Spec):
    """The effect of each segment on the answer, measured by replacing it with donors."""

    name = "effects"
    help = "replace segments with those of other prompts and print the effect of each on the answer"
    examples = (
        "effects --model organism/phi3-deep --limit 48",
        "effects --segments premise1 premise2 --donors 16 --out runs/effects",
        "effects --server http://127.0.0.1:8000/v1 --model org/model --context context_cite",
    )
    written = (
        "written to {folder}/segment_effect_table.csv; prompt by prompt in segment_effects.parquet"
    )
    measures = "interp.measurements.effects.measure:effects"
    derives = (
        "interp.measurements.effects.show:SEGMENTS",
        "interp.measurements.effects.show:CONTEXT",
    )
    compares_options = True
    fills = ("segment_effects", "coalition_values", "context_scores")
    optional: ClassVar[Mapping[str, str]] = {"context_scores": "context"}
    shard_prompts = 60
    excluded_from_identity = frozenset({"server"})
    given = "interp.measurements.given:Replaced"
    result = "interp.measurements.effects.show:SegmentEffects"

    segments: Annotated[Names | None, FromText(texts.names, "NAME")] = None
    """the segments to replace, such as premise1,premise2 or thought1 (default: all for which the
    system has donors, and all sentences of a thought if each prompt has several thoughts)"""
    donors: Annotated[int, Field(ge=1, le=MOST_DONORS)] = DONORS
    """number of donors for each prompt, from other instances of its template"""
    server: Annotated[str | None, FromText(texts.server, "URL")] = None
    """address of a server that runs the model by vLLM's protocol, such as http://127.0.0.1:8000/v1;
    only tokenizer and configuration are read here, and an API key from INTERP_SERVER_KEY"""
    context: Methods | None = None
    """methods of context attribution whose scores are computed from the same values, without
    further passes: context_cite, shapley, leave_one_out:donor, captum:kernel_shap, captum:lime
    (default: none)"""

    @model_validator(mode="after")
    def _check_context(self) -> "Effects":
        for name in self.context or ():
            registry.check_by_coalitions(name)
        return self

    @property
    def needs_weights(self) -> bool:
        """Whether this machine computes; otherwise, a server does."""
        return self.server is None

    def arranged(self, prompts: Prompts) -> Prompts:
        """The prompts with their donors."""
        from interp.attribution.games import check_segments
        from interp.prompts.mixing import with_donors
        from interp.prompts.prompt_set import on_sides

        prompts = prompts if self.sides is None else on_sides(prompts, self.sides)
        # Donors for the sentences of a thought are other thoughts of the model.
        segments = self.segments and tuple(name for name in self.segments if not is_part(name))
        arranged = with_donors(prompts, count=self.donors, segments=segments)
        for donor in arranged[0].donors[:1]:
            if not donor.segments and not self.segments:
                raise UserError(
                    "the prompts have no segment that donors could replace; mark some in the text, "
                    "as <premise1>It rains.</premise1>, or give each a column"
                )
            check_segments(arranged[0], tuple(donor.segments))
        return arranged


class Thoughts(ReadsAnswers, Spec):
    """How much of a thinking model's answers passes through its thoughts."""

    name = "thoughts"
    help = (
        "exchange premises and thoughts and print how much of the answers passes through the "
        "thoughts"
    )
    examples = (
        "thoughts --model organism/thought-mixed-50 --limit 48",
        "thoughts --model org/model --thoughts runs/thoughts --draws 8 "
        "--max-new-tokens 2000 --out runs/mediation",
    )
    written = "written to {folder}: {tables}; {program} report {folder} makes the page"
    measures = "interp.measurements.thoughts.measure:thought_effects"
    derives = (
        "interp.measurements.thoughts.tables:READING",
        "interp.measurements.thoughts.tables:SENTENCES",
        "interp.measurements.thoughts.tables:EARLY",
    )
    fills = ("thought_answers", "thought_effects", "sentence_effects")
    shard_prompts = 12
    reads_thoughts = False
    studies_thoughts = True
    given = "interp.measurements.given:Thought"
    result = "interp.measurements.thoughts.show:ThoughtEffects"

    draws: Annotated[int, Field(ge=2, le=MOST_DRAWS)] = 4
    """number of thoughts on each prompt and each changed prompt"""
    donors: Annotated[int, Field(ge=1, le=MOST_DONORS)] = 1
    """number of donors for each prompt, from other instances of its template"""
    segments: Annotated[Names | None, FromText(texts.names, "NAME")] = None
    """the segments to exchange, such as premise1,premise2 (default: all for which the system has
    donors)"""
    temperature: Annotated[Temperature, Field(gt=0)] = 1.0
    """sampling temperature for thoughts"""
    sampling_seed: Annotated[int, Field(ge=0, le=texts.LARGEST_SEED)] = 0
    """seed for sampling, combined with the prompt's id"""
    max_new_tokens: Annotated[int, Field(ge=1, le=texts.MOST_TOKENS)] = MAX_NEW_TOKENS
    """maximum number of tokens in a thought"""

    def arranged(self, prompts: Prompts) -> Prompts:
        """The prompts with their donors."""
        from interp.prompts.mixing import with_donors

        return with_donors(prompts, count=self.donors, segments=self.segments)


class Patch(ReadsAnswers, OfPairs, Spec):
    """The effect of activations from the other prompt of a pair on the answer."""

    name = "patch"
    help = "patch activations between the prompts of pairs and print the effects by role"
    examples = (
        "patch --model organism/phi3-deep --limit 48",
        "patch --sites z attn_out --layers 0-2 --granularity position --limit 24",
    )
    written = (
        "written to {folder}: intervals in effect_table.csv; {program} report {folder} draws the "
        "effects"
    )
    measures = "interp.measurements.patching.measure:patching"
    compares_options = True
    fills = ("pairs", "patches", "node_sets")
    derives = (
        "interp.measurements.patching.tables:EFFECTS",
        "interp.measurements.patching.tables:NODE_SETS",
    )
    optional: ClassVar[Mapping[str, str]] = {"node_sets": "sets"}
    shard_prompts = 60
    excluded_from_identity = frozenset({"remote"})
    given = "interp.measurements.given:Paired"
    result = "interp.measurements.patching.show:Patches"

    sites: Annotated[
        tuple[choices.SiteName, ...], Field(min_length=1), FromText(texts.names, "NAME")
    ] = ("resid_pre",)
    """resid_pre, resid_mid, resid_post, attn_out, mlp_out, z, q, k, v, pattern"""
    granularity: choices.Granularity = "role"
    """the tokens that are patched together: the tokens of each role or segment, each single
    position, or all tokens
    """
    direction: Literal["denoising", "noising"] = "denoising"
    """denoising: clean activations into the corrupt prompt; noising: the reverse"""
    clean: str | None = None
    """the clean side of a pair (default: the system's first)"""
    policy: choices.Policy = "last"
    """how to align differing spans with unequal numbers of tokens: by the last token, by the mean,
    or all to reject such pairs
    """
    layers: Annotated[Indices | None, FromText(texts.numbers, "N")] = None
    """which layers, such as 0,2,5 or 0-2 (default: all)"""
    heads: Annotated[Indices | None, FromText(texts.numbers, "N")] = None
    """the heads, such as 0,2,5 or 0-2 (default: all)"""
    estimate: Annotated[str, FromText(PATCHING.label, WRITTEN)] | None = None
    """estimate all effects from one backward pass (gradient) or from five (integrated; or N, as
    integrated:steps=N) instead of running each patch"""
    verify: Annotated[int, Field(ge=0, le=texts.MOST_TOKENS)] = 0
    """in each pair, the K cells with the largest absolute estimates are also run exactly"""
    guarantee: Annotated[float | None, Field(gt=0, lt=1), FromText(texts.share, "P")] = None
    """bound the effects that are only estimated: with probability P, such as 0.95, no effect at a
    site exceeds its bound in an unchecked pair
    """
    checked: Annotated[float, Field(gt=0, lt=1), FromText(texts.share, "SHARE")] = 0.25
    """with a guarantee: share of the pairs in which all cells are run exactly, to derive bounds"""
    sets: bool = False
    """also patch growing sets of cells together, in the order of their effects and in random order
    """
    control: bool = False
    """also run each patch with activations from a control: the prompt about different entities,
    with the same correct answer
    """
    backend: Annotated[str, FromText(_backend, "NAME")] = NATIVE
    """native, transformer-lens, nnsight, or a backend of another package"""
    remote: bool = False
    """run a hub model on NDIF's servers, with nnsight; its weights are not downloaded"""

    @model_validator(mode="after")
    def _check_together(self) -> "Patch":
        if self.verify and self.estimate is None:
            raise UserError(
                "got verify without an estimate, but exact patching needs no verification; add "
                "an estimate, or omit verify"
            )
        if self.guarantee is not None and (self.estimate is None or self.verify):
            raise UserError(
                "a guarantee bounds the errors of estimates, based on pairs in which all cells are "
                "run exactly; add an estimate, and omit verify"
            )
        if self.sets and (self.backend != NATIVE or "pattern" in self.sites):
            raise UserError(
                "sets of cells are patched natively, at sites other than pattern; got "
                f"the backend {self.backend} and the sites {', '.join(self.sites)}. Omit the "
                "backend, and use z instead of pattern"
            )
        if self.backend == "nnsight" and "pattern" in self.sites:
            raise UserError(
                "the backend nnsight has no site pattern: attention weights pass through no "
                "module; use --backend native or transformer-lens"
            )
        if self.answers == "whole" and self.backend != NATIVE:
            raise UserError(
                f"whole answers are read by the toolkit's own passes; got the backend "
                f"{self.backend}. Use --backend native, or --answers first"
            )
        if self.remote and self.backend != "nnsight":
            raise UserError(
                f"the backend {self.backend} does not run remotely; use the backend nnsight"
            )
        if self.remote and self.estimate is not None:
            raise UserError(
                f"the estimate {self.estimate!r} needs gradients, for which the weights must be "
                "on this machine; omit remote, or omit the estimate"
            )
        return self

    @property
    def needs_weights(self) -> bool:
        """Whether this machine computes; otherwise, a server does."""
        return not self.remote

    @property
    def needs_hub(self) -> bool:
        """Whether the server that computes has only models from the hub."""
        return self.remote

    def whole_layers(self) -> str:
        """A site of heads, or the backend of another library."""
        if self.backend != NATIVE:
            return f"the backend {self.backend}"
        return _site_of_heads(self.sites)

    def modules(self) -> Sequence[str]:
        """The modules of the measurement and of its backend."""
        backend = plugins(BACKENDS).get(self.backend)
        return (*super().modules(), *([] if backend is None else [backend.module]))

    def arranged(self, prompts: Prompts) -> Prompts:
        """The prompts pair by pair, the clean one first, with donors for controls."""
        from interp.patching.pairs import in_pairs
        from interp.prompts.mixing import with_donors

        pairs = in_pairs(prompts, clean=self.clean, sides=self.sides)
        return with_donors(pairs, count=1) if self.control else pairs


def _site_of_heads(sites: Sequence[str]) -> str:
    """The first of the sites that belongs to heads, in words; empty if there is none."""
    return next((f"the site {site}" for site in sites if choices.SITES[site].heads), "")


class Edges(ReadsAnswers, OfPairs, Spec):
    """The effect of each edge between the components of a model on the answer."""

    name = "edges"
    help = "score the edges between heads, MLPs, input and logits and print the largest"
    examples = (
        "edges --model organism/llama-deep --limit 48",
        "edges --methods gradient integrated exact --limit 24 --out runs/edges",
    )
    written = "written to {folder}: all edges in edge_table.csv; pair by pair in edges.parquet"
    measures = "interp.measurements.edges.measure:edges"
    compares_options = True
    fills = ("pairs", "edges")
    derives = ("interp.measurements.edges.show:EDGES",)
    shard_prompts = 24
    given = "interp.measurements.given:Paired"
    result = "interp.measurements.edges.show:EdgeEffects"

    methods: Annotated[tuple[str, ...], FromVariants(EDGES.some, WRITTEN, EDGES)] = ("integrated",)
    """gradient, integrated, activations, softmax and gim estimate all edges from a few backward
    passes; exact runs the model once per edge. integrated:steps=N and activations:steps=N average
    over N points instead of five"""
    directions: Annotated[tuple[Literal["noising", "denoising"], ...], Field(min_length=1)] = (
        "noising",
    )
    """noising runs the clean prompt and patches edges with the corrupt prompt's activations;
    denoising is the reverse"""
    sample: Annotated[int, Field(ge=1, le=texts.MOST_TOKENS)] | None = None
    """limit exact runs to N random edges into each kind of reader (queries, keys, values, MLPs,
    logits): the same for all pairs or, with a guarantee, different ones in each (default: all)"""
    guarantee: Annotated[float | None, Field(gt=0, lt=1), FromText(texts.share, "P")] = None
    """bound the effects that are only estimated: with probability P, such as 0.95, no effect of an
    edge (with a sample: of N edges drawn at random) exceeds its bound in an unchecked pair"""
    checked: Annotated[float, Field(gt=0, lt=1), FromText(texts.share, "SHARE")] = 0.25
    """with a guarantee: share of the pairs whose edges are run exactly, to derive bounds"""
    clean: str | None = None
    """the clean side of a pair (default: the system's first)"""
    policy: choices.Policy = "last"
    """alignment of differing spans with unequal numbers of tokens: last, mean, or all to reject
    such pairs
    """

    @model_validator(mode="after")
    def _check_together(self) -> "Edges":
        if self.guarantee is not None and "exact" in self.methods:
            raise UserError(
                "a guarantee bounds the errors of estimates, but exact leaves nothing to estimate; "
                "omit exact from the methods, since a guarantee runs the checked pairs exactly"
            )
        if self.answers == "whole" and "softmax" in self.methods:
            raise UserError(
                "softmax computes the attention of the prompt's tokens exactly, but whole answers "
                "also attend to them from behind the prompt; omit softmax from the methods, or use "
                "--answers first"
            )
        if self.sample is not None and self.guarantee is None and "exact" not in self.methods:
            raise UserError(
                "a sample selects the edges to run exactly, but no edges are run exactly; add "
                "exact to the methods, or set a guarantee"
            )
        return self

    def whole_layers(self) -> str:
        """The graph, whose edges begin and end at heads."""
        return "a graph of edges"

    def arranged(self, prompts: Prompts) -> Prompts:
        """The prompts pair by pair, the clean before the corrupt prompt."""
        from interp.patching.pairs import in_pairs

        return in_pairs(prompts, clean=self.clean, sides=self.sides)


class Steer(ReadsAnswers, OfPairs, Spec):
    """The effect of a change of the residual stream along directions on the answer."""

    name = "steer"
    help = (
        "swap, project out or add directions of the residual stream and print the effect on the "
        "answer beside that of random directions"
    )
    examples = (
        "steer --model organism/llama-deep --words entity_a --roles premise1_entity_b --limit 24",
        "steer --changes project add --directions difference --doses 0.5 1 2 --out runs/steer",
    )
    written = "written to {folder}: {tables}; {program} report {folder} makes the page"
    measures = "interp.measurements.steering.measure:steering"
    compares_options = True
    fills = ("steered", "steering_effects")
    derives = ("interp.measurements.steering.show:STEERING",)
    shard_prompts = 24
    given = "interp.measurements.given:Changed"
    result = "interp.measurements.steering.show:Steered"

    changes: Annotated[tuple[Literal["swap", "project", "add"], ...], Field(min_length=1)] = (
        "swap",
    )
    """swap: exchange the coordinates of two words; project: leave nothing of the directions; add:
    add the direction towards the other word or side, as long as the stream itself"""
    directions: Annotated[
        tuple[Literal["jacobian", "own", "logit", "difference"], ...], Field(min_length=1)
    ] = ("jacobian",)
    """jacobian: rows of the words in the Jacobian lens; own: in the prompt's own Jacobian; logit:
    in the unembedding; difference: the mean difference between the sides of pairs about other
    entities, which has no words and cannot be swapped"""
    words: str = "options"
    """the two words. options: the correct answer and the other one; or a segment or role, such as
    entity_a for premise1_entity_a: its text in the prompt, and in the other prompt of the pair"""
    roles: Annotated[Names | None, FromText(texts.names, "NAME")] = None
    """segments and roles whose tokens are changed, each by itself; those joined by + are changed
    together, such as premise1_entity_b+premise2_entity_b, as far as a prompt has them (default: the
    token at which the answer is read)"""
    tokens: Literal["last", "all"] = "all"
    """all tokens of a segment or role, or its last token"""
    layers: Annotated[Indices | None, FromText(texts.numbers, "N")] = None
    """which layers, such as 0,2,5 or 0-2 (default: all; with a band: from 38% to 92% of the depth)
    """
    band: bool = False
    """change these layers together instead of one by one"""
    doses: Annotated[
        tuple[Annotated[float, Field(allow_inf_nan=False), FromText(texts.number, "DOSE")], ...],
        Field(min_length=1),
    ] = (1.0,)
    """factors by which the changes are multiplied"""
    draws: Annotated[int, Field(ge=1, le=MOST_DRAWS)] = 4
    """number of random directions in place of each change, with the same norm"""
    side: str | None = None
    """the side of each pair whose prompts are changed (default: both)"""
    donors: Annotated[int, Field(ge=1, le=MOST_DONORS)] = DONORS
    """with difference: number of other pairs whose sides are compared, for each pair"""

    @model_validator(mode="after")
    def _check_together(self) -> "Steer":
        if "difference" in self.directions and "swap" in self.changes:
            raise UserError(
                "swap exchanges the coordinates of two words, but a difference between sides is a "
                "single direction; use --changes project add, or other directions"
            )
        if 0.0 in self.doses or len(set(self.doses)) < len(self.doses):
            raise UserError("a dose is 0 or given twice; expected different doses other than 0")
        return self

    def whole_layers(self) -> str:
        """Directions of words."""
        return "" if self.directions == ("difference",) else "a direction of words"

    def arranged(self, prompts: Prompts) -> Prompts:
        """The prompts pair by pair, with donors."""
        from interp.patching.pairs import in_pairs
        from interp.prompts.mixing import with_donors
        from interp.prompts.prompt_set import PromptSet

        pairs = in_pairs(prompts, sides=self.sides)
        sides = list(dict.fromkeys(prompt.side for prompt in pairs))
        if self.side is not None and self.side not in sides:
            raise UserError(unknown("side", self.side, sides))
        named = chain.from_iterable((*prompt.segments, *prompt.roles) for prompt in pairs)
        known = dict.fromkeys((*choices.RESERVED, *named))
        for role in self.roles or ():
            # Of joined roles, a prompt may lack some.
            if not any(name in known for name in role.split("+")):
                raise UserError(unknown("segment or role", role, known))
        if self.words != "options" and not any(
            name == self.words or name.endswith(f"_{self.words}") for name in known
        ):
            raise UserError(unknown("segment or role", self.words, ["options", *known]))
        needed = "difference" in self.directions
        if not needed and isinstance(pairs, PromptSet) and pairs.donors is None:
            return pairs
        return with_donors(pairs, count=self.donors if needed else 1)


class Circuits(ReadsAnswers, OfPairs, Spec):
    """The answers of a model that is restricted to the edges of a circuit."""

    name = "circuits"
    help = (
        "choose circuits by the effects of edges, run the model with only a circuit's edges, and "
        "print how much of its answer remains"
    )
    examples = (
        "circuits --model organism/llama-shallow --limit 24",
        "circuits --edges runs/edges --split phrasing --seed 1 --out runs/circuits",
    )
    written = "written to {folder}: {tables}; {program} report {folder} draws the circuits"
    measures = "interp.measurements.circuits.measure:circuits"
    compares_options = True
    fills = ("pairs", "circuits")
    derives = (
        "interp.measurements.circuits.tables:CIRCUITS",
        "interp.measurements.circuits.tables:SPLIT",
    )
    shard_prompts = 24
    given = "interp.measurements.given:Paired"
    result = "interp.measurements.circuits.show:CircuitAnswers"
    reads: ClassVar[str] = "interp.runs.edge_effects:EdgesRun"
    """The class that reads the run of `edges`."""

    edges: Annotated[Path | None, FromText(texts.path, "DIR")] = None
    """folder of a finished run of `edges` on these models, whose mean effects rank the edges
    (default: measure the edges on the same prompts first)"""
    methods: Annotated[tuple[str, ...] | None, FromVariants(EDGES.some, WRITTEN, EDGES)] = None
    """methods from whose effects circuits are chosen (default: all methods in the run of `edges`
    or, without a run, integrated)"""
    split: Annotated[str | None, FromText(texts.name, "FACTOR")] = None
    """a factor of the prompts, such as phrasing: circuits are chosen by the effects for half of its
    values and tested on the other half"""
    clean: str | None = None
    """the clean side of a pair, as in the run of `edges` (default: the system's first)"""
    policy: choices.Policy = "last"
    """alignment of differing spans with unequal numbers of tokens: last, mean, or all to reject
    such pairs"""

    def whole_layers(self) -> str:
        """The graph, whose edges begin and end at heads."""
        return "a graph of edges"

    def arranged(self, prompts: Prompts) -> Prompts:
        """The prompts pair by pair, the clean before the corrupt prompt."""
        from interp.patching.pairs import in_pairs

        known = list(dict.fromkeys(name for prompt in prompts for name in prompt.factors))
        if self.split is not None and self.split not in known:
            raise UserError(unknown("factor", self.split, known))
        from interp.tables import SCHEMAS

        if self.split in SCHEMAS["edges"].names:
            raise UserError(
                f"the factor {self.split} has the name of a column of the effects of edges; rename "
                "it, so that effects can be split by it"
            )
        return in_pairs(prompts, clean=self.clean, sides=self.sides)

    def first(self) -> Edges:
        """The measurement of edges to run first if no finished run is given."""
        shared = self.model_dump(include={"answers", "sides", "clean", "policy"})
        return Edges(methods=self.methods or ("integrated",), **shared)

    def identity(self) -> dict[str, JsonValue]:
        """The options, with the absolute path and a checksum of the edges."""
        options = super().identity()
        if self.edges is None:
            return options
        path = str(self.edges.absolute())
        return {**options, "edges": path, "checksum": named(self.reads).read(self.edges).checksum}


class Activations(ReadsAnswers, Spec):
    """Answers, and the vectors at selected sites and tokens of each prompt."""

    name = "activations"
    help = "write activations at chosen sites and tokens as safetensors, with an index as Parquet"
    examples = (
        "activations --model organism/phi3-deep --roles premise2 last --limit 48",
        "activations --sites z mlp_out --layers 0-2 --roles premise1 --tokens mean --out "
        "runs/vectors",
    )
    written = "written to {folder}: activations.parquet lists the tensor and the row of each vector"
    measures = "interp.measurements.activations.measure:activations"
    fills = ("answers", "activation_vectors")
    shard_prompts = 60
    unmerged = frozenset({"activation_vectors"})
    result = "interp.measurements.activations.show:ActivationVectors"

    sites: Annotated[
        tuple[choices.VectorSite, ...], Field(min_length=1), FromText(texts.names, "NAME")
    ] = ("resid_post",)
    """resid_pre, resid_mid, resid_post, attn_out, mlp_out, z, q, k, v"""
    roles: Annotated[Names | None, FromText(texts.names, "NAME")] = None
    """segments and roles whose tokens are read, such as premise2,last, or all for the whole prompt;
    a prompt that lacks a segment or role has no vector for it (default: the token at which the
    answer is read)
    """
    tokens: Literal["last", "mean", "all"] = "last"
    """tokens of a segment or role: the last token, the mean over all tokens, or all tokens, with
    one vector per token
    """
    layers: Annotated[Indices | None, FromText(texts.numbers, "N")] = None
    """which layers, such as 0,2,5 or 0-2 (default: all)"""

    def whole_layers(self) -> str:
        """A site of heads."""
        return _site_of_heads(self.sites)

    def arranged(self, prompts: Prompts) -> Prompts:
        """The prompts, unchanged."""
        _check_roles(self.roles, prompts)
        return prompts


def _check_roles(roles: Sequence[str] | None, prompts: Sequence[Prompt]) -> None:
    if roles is None:
        return
    named = chain.from_iterable((*prompt.segments, *prompt.roles) for prompt in prompts)
    known = dict.fromkeys((*choices.RESERVED, *named))
    for name in roles:
        if name not in known and name != END and not is_part(name):
            raise UserError(unknown("segment or role", name, known))


class Lens(ReadsAnswers, Spec):
    """Which words each layer makes the model likely to say, read by lenses at chosen tokens."""

    name = "lens"
    help = "read which words each layer makes the model likely to say, and count the right ones"
    examples = (
        "lens --model organism/phi3-deep --roles conclusion last --limit 48",
        "lens --facts rulebreakers --roles premise2_entity_b --limit 24 --out runs/lens",
    )
    written = "written to {folder}: {tables}; {program} report {folder} draws the readings"
    measures = "interp.measurements.lens.measure:lens"
    fills = ("answers", "lens_readings")
    derives = (
        "interp.measurements.lens.show:READINGS",
        "interp.measurements.lens.show:WORDS",
        "interp.measurements.lens.ledger:RETRIEVAL",
    )
    shard_prompts = 60
    result = "interp.measurements.lens.show:LensReadings"

    roles: Annotated[Names | None, FromText(texts.names, "NAME")] = None
    """segments and roles whose tokens are read, such as premise2_entity_b,last (default: the token
    at which the answer is read)"""
    tokens: Literal["last", "all"] = "last"
    """read the last token of a segment or role, or each of its tokens"""
    layers: Annotated[Indices | None, FromText(texts.numbers, "N")] = None
    """which layers, such as 0,2,5 or 0-2 (default: all); the embeddings are always read too"""
    methods: Annotated[tuple[Literal["jacobian", "own", "logit"], ...], Field(min_length=1)] = (
        "jacobian",
        "logit",
    )
    """jacobian: the mean effect on saying a word now or later, fitted on a corpus; own: the effect
    in this prompt; logit: the logit lens, which reads a layer as if it were the last"""
    facts: Annotated[str | None, FromText(texts.name, "SOURCE")] = None
    """a system with facts, such as rulebreakers, or a table of your own facts: the words are the
    answers of all facts, and the right one is that of the fact which the prompt is about (default:
    the words are the prompt's options, and the right one is the correct answer)"""
    words: Annotated[Names | None, FromText(texts.names, "WORD")] = None
    """words of your own, none of which is right"""
    corpus: Annotated[Path | None, FromText(texts.path, "FILE")] = None
    """a file with one text per line, on which the Jacobian lens is fitted (default: 64 plain
    sentences)"""

    @model_validator(mode="after")
    def _check_words(self) -> "Lens":
        if self.words is not None and (self.facts is not None or len(set(self.words)) < 2):
            raise UserError(
                f"got {'facts and ' * (self.facts is not None)}the words "
                f"{shortened(', '.join(self.words), 80)}; expected either facts or two words or "
                "more"
            )
        return self

    def whole_layers(self) -> str:
        """A lens, which needs the whole unembedding."""
        return "a lens"

    def arranged(self, prompts: Prompts) -> Prompts:
        """The prompts, unchanged."""
        _check_roles(self.roles, prompts)
        return prompts

    def identity(self) -> dict[str, JsonValue]:
        """The options, with hashes of the facts and of the corpus."""
        from interp.lenses.corpus import corpus_hash, read_corpus
        from interp.prompts.own.facts import find_facts

        options = super().identity()
        if self.facts is not None:
            options["facts_hash"] = find_facts(self.facts).content_hash()
        if self.corpus is not None:
            options["corpus_hash"] = corpus_hash(read_corpus(self.corpus))
        return options
