"""The forward passes for a pair, from the first differing token on, and their results.

1. The tokens that both prompts share are run once; all passes use their keys and values.
2. The base and source prompts are run from the first differing token on, and the requested sites
   are kept.
3. The alignment maps the source's activations to the base's tokens.

The metric is the logit difference between the two contrasted options, in fp32.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from transformers.cache_utils import Cache

from interp.choices import SITES, AnswerReading
from interp.errors import UserError
from interp.models.cache import KeyValues, behind, is_long, key_values, runs_in_parts
from interp.models.families.settings import drops_tokens
from interp.models.kinds import CAUSAL, CLASSIFIER
from interp.models.model import Model
from interp.models.sites import View, attention_by, embedded_as, layer_count, locate, recorded
from interp.models.unembedding import ExactLogits
from interp.patching.alignment import bring, bring_pattern
from interp.patching.cells import PatchingPair
from interp.reading.tokens import Batch, TokenizedPrompt, safe_width
from interp.scoring.answer_tokens import ContrastTokens
from interp.scoring.whole_answers import read_behind

Embeddings = Float[Tensor, "row token size"]
Written = Float[Tensor, "token head size"]
Pattern = Float[Tensor, "head token all_tokens"]

SiteKey = tuple[str, int]
"""Site and layer."""


def answers_alone(logits: ExactLogits, answers: ContrastTokens) -> AbstractContextManager[None]:
    """Restrict the model's logits within the block to the positive, then the negative tokens.

    If they are read as whole texts, the logits of all tokens are computed exactly instead.
    """
    return logits.of(None if answers.ways else [*answers.positive, *answers.negative])


def logit_difference(logits: Float[Tensor, "row token"], positive: int) -> Float[Tensor, " row"]:
    """Log-sum-exp of the first `positive` logits minus that of the others, in logits.

    With one form per answer, this is the plain difference of two logits; with several forms, it is
    the logarithm of c+ / c-, the ratio of the answers' probabilities.
    """
    return logits[:, :positive].logsumexp(1) - logits[:, positive:].logsumexp(1)


def metrics_of(logits: Float[Tensor, "row token"], answers: ContrastTokens) -> list[float]:
    """The logit difference of each row, with the positive tokens before the negative ones."""
    return [float(metric) for metric in logit_difference(logits, len(answers.positive)).tolist()]


@dataclass(frozen=True, slots=True)
class Pass:
    """The results of a forward pass from a given token on."""

    values: Mapping[SiteKey, Tensor]
    """The tensor at each site's location: (1, token, width), or (1, head, token, token) for
    patterns."""
    key_values: KeyValues
    """Keys and values of the layers that ran, including those of earlier tokens."""
    logits: Float[Tensor, "row token"]
    """Logits at the last position: for all tokens or, within `answers_alone`, only for the answers.
    Those of whole texts are read behind the prompt (`with_answers`)."""


def embed(model: Model, token_ids: Sequence[int]) -> Float[Tensor, "1 token size"]:
    """The input embeddings of a prompt."""
    ids = torch.tensor([token_ids], device=model.device)
    embeddings: Tensor = model.hf.get_input_embeddings()(ids)
    return embeddings


def forward(
    model: Model,
    prompt: TokenizedPrompt,
    embeddings: Embeddings,
    *,
    start: int,
    past: KeyValues | Cache,
) -> Pass:
    """Run the model on embeddings of a prompt from position `start` on, after those in `past`.

    A cache (`behind`) is extended by the pass, even by one that is ended early. A model that does
    not run in parts reads the whole prompt, and keeps no keys and values.
    """
    rows, tokens, _ = embeddings.shape
    parts, end = runs_in_parts(model), start + tokens
    assert parts or (start, end) == (0, len(prompt)), "this model reads prompts whole"
    ids = torch.tensor([prompt.token_ids[start:end]], device=embeddings.device)
    positions = torch.arange(start, end, device=embeddings.device)[None]
    earlier = past if isinstance(past, Cache) else behind(past, rows=rows, tokens=start)
    cache = earlier if parts else None
    if not parts:  # masks of some models (Qwen 4) have a row for each row of positions
        positions = positions.expand(rows, -1)
    inputs = {"position_ids": positions, model.cache_argument: cache, "use_cache": parts}
    if parts:  # late layers of Gemma 4 would read only the tokens whose logits are kept
        inputs["logits_to_keep"] = 1
    # Plain attention where PyTorch's fused attention would be wrong.
    fused = safe_width(end, embeddings.device) == end
    sound: Any = nullcontext() if fused else sdpa_kernel(SDPBackend.MATH)
    with sound, embedded_as(model, embeddings):
        output = model.hf(input_ids=ids.expand(rows, -1), **model.taken(inputs))
    return Pass({}, key_values(cache) if parts else [], output.logits[:, -1])


def with_answers(model: Model, prompt: TokenizedPrompt, run: Pass, answers: ContrastTokens) -> Pass:
    """A pass with the logits of the answers alone, for which whole texts are read behind it.

    Nothing that records or changes the pass may act on the reading of whole texts, which sees the
    pass only through its keys and values. Call it within `answers_alone`.
    """
    if not answers.ways:
        return run
    rows, ids = len(run.logits), torch.tensor([prompt.token_ids], device=run.logits.device)
    behind_it = read_behind(
        model,
        Batch(
            (prompt,), ids, torch.ones_like(ids), torch.arange(len(prompt), device=ids.device)[None]
        ),
        [answers.ways] * rows,
        run.logits,
        past=[behind(run.key_values, rows=rows, tokens=len(prompt))],
    )
    columns = torch.cat([run.logits, behind_it.ways.to(run.logits)], 1)
    return replace(run, logits=columns[:, [*answers.positive, *answers.negative]])


def entrance(model: Model, layer: int) -> SiteKey:
    """The residual stream that a layer reads, or that the final norm reads after the last layer."""
    count = layer_count(model)
    return ("resid_pre", layer) if layer < count else ("resid_post", count - 1)


def run_pass(
    model: Model,
    prompt: TokenizedPrompt,
    embeddings: Float[Tensor, "1 token size"],
    keys: Iterable[SiteKey],
    *,
    start: int,
    past: KeyValues,
    answers: ContrastTokens | None = None,
) -> Pass:
    """Run one prompt from `start` on; keep the sites in `keys`, with the logits of `answers`."""
    locations = {key: locate(model, *key) for key in set(keys)}
    with ExitStack() as stack:
        if any(SITES[site].is_weights for site, _ in locations):
            stack.enter_context(attention_by(model, "eager"))
        values = stack.enter_context(recorded(locations))
        passed = forward(model, prompt, embeddings, start=start, past=past)
    passed = passed if answers is None else with_answers(model, prompt, passed, answers)
    return replace(passed, values=values)


@dataclass(frozen=True, slots=True)
class PairPasses:
    """The two passes of a pair."""

    pair: PatchingPair
    prefix: KeyValues
    """Keys and values of the shared tokens."""
    base: Pass
    source: Pass

    @property
    def metrics(self) -> tuple[float, float]:
        """The metrics of the base and the source prompt."""
        (base,) = metrics_of(self.base.logits, self.pair.answers)
        (source,) = metrics_of(self.source.logits, self.pair.answers)
        return base, source

    def activations(self, key: SiteKey, view: View) -> tuple[Written, Written]:
        """The base's activations at a site and a patch's, from the first difference on."""
        base, source = (view(p.values[key])[0] for p in (self.base, self.source))
        return base, bring(source, self.pair.alignment, start=self.pair.shared)

    def patterns(self, layer: int) -> tuple[Pattern, Pattern]:
        """The base prompt's attention weights, and the weights with which a patch replaces them."""
        base, source = (p.values["pattern", layer][0] for p in (self.base, self.source))
        return base, bring_pattern(source, self.pair.alignment, start=self.pair.shared)

    def outputs_of_heads(self, layer: int) -> tuple[Written, Written]:
        """Head outputs: the base's values, weighted by its own and by the written pattern."""
        values = self.base.key_values[layer][1][0]
        base, written = (heads_output(pattern, values) for pattern in self.patterns(layer))
        return base, written


def heads_output(pattern: Pattern, values: Float[Tensor, "kv_head all_tokens size"]) -> Written:
    """The outputs of the heads: values weighted by attention."""
    repeated = values.repeat_interleave(pattern.shape[0] // values.shape[0], dim=0)
    return torch.einsum("hqk,hkd->qhd", pattern, repeated)


def read_whole(model: Model, *prompts: TokenizedPrompt) -> bool:
    """Whether the prompts of a pair must be read from their first tokens, with nothing shared."""
    longest = max(map(len, prompts))
    return is_long(model, longest) or not (runs_in_parts(model) or model.kind.reads_ahead)


def answers_behind(model: Model, answers: AnswerReading) -> AnswerReading | None:
    """How options are read behind patches, by keys and values alone; None: by first tokens."""
    if model.kind is CLASSIFIER:
        return answers
    if model.kind is CAUSAL and runs_in_parts(model) and not drops_tokens(model.text_config):
        return answers
    if answers == "whole":
        raise UserError(
            f"{model.name} is a {model.kind.name} ({model.hf.config.model_type}) that keeps more "
            "than the keys and values of all tokens, so whole answers cannot be read behind a "
            "patch; use --answers first, or measure effects, which read such models whole"
        )
    return None


def run_pair(model: Model, pair: PatchingPair, keys: Iterable[SiteKey]) -> PairPasses:
    """Run both prompts of a pair once, within `answers_alone`, and keep the sites in `keys`."""
    keys, shared = list(keys), pair.shared
    prefix: KeyValues = []
    if shared:
        first = embed(model, pair.base.token_ids[:shared])
        prefix = forward(model, pair.base, first, start=0, past=[]).key_values
    base, source = (
        run_pass(
            model,
            prompt,
            embed(model, prompt.token_ids[shared:]),
            keys,
            start=shared,
            past=prefix,
            answers=pair.answers,
        )
        for prompt in (pair.base, pair.source)
    )
    return PairPasses(pair, prefix, base, source)
