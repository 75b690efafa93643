"""Attribution with captum: differences from a baseline, and surrogate models (KernelSHAP, LIME).

The methods that score tokens explain how the target differs between the prompt's embeddings and a
baseline: a donor's embeddings for `integrated_gradients`, and the vocabulary's mean embedding for
methods whose names begin with `captum:`. (docs/attribution.md explains why the baseline is not
captum's default of zeros.) A token's score is its attribution summed over the embedding's
dimensions, in the target's units. The inputs of a surrogate indicate which segments are kept.
"""

import warnings
import zlib
from dataclasses import replace
from functools import partial
from typing import Any

import captum.attr
import torch
from captum._utils.models.linear_model import SkLearnLasso
from captum.attr._core.deep_lift import SUPPORTED_NON_LINEAR
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from interp.attribution.counterfactual import counterfactual_ids, equal_columns
from interp.attribution.explained import Embeddings, ExplainedPrompt, Played, Values
from interp.attribution.method import SegmentScores, TokenScores
from interp.errors import UserError
from interp.models.kinds import CAUSAL
from interp.models.model import Model
from interp.models.precision import wide
from interp.reading.readers import reader_of


class IntegratedGradients:
    """(Embedding - donor's embedding) . mean gradient along the straight line between the two."""

    def __init__(self, model: Model, *, steps: int) -> None:
        self._model = model
        self._steps = steps

    def attribute(self, explained: ExplainedPrompt) -> TokenScores:
        """Scores that add up to the change in the target, except for the integration error."""
        donors = counterfactual_ids(self._model, explained.batch)
        start = equal_columns(self._model, explained.batch, donors)
        baseline = reader_of(self._model).embed(donors)
        return _integrated(explained, baseline, steps=self._steps, start=start)


class _FromMean:
    """A method whose baseline is the mean of the vocabulary's embeddings."""

    def __init__(self, model: Model) -> None:
        self._mean = mean_embedding(model)

    def _baseline(self, explained: ExplainedPrompt) -> Embeddings:
        return self._mean.expand_as(explained.embeddings).clone()


class MeanIntegratedGradients(_FromMean):
    """Integrated gradients (Sundararajan et al. 2017) from the mean embedding."""

    def __init__(self, model: Model, *, steps: int) -> None:
        super().__init__(model)
        self._steps = steps

    def attribute(self, explained: ExplainedPrompt) -> TokenScores:
        """Scores that add up to the change in the target, except for the integration error."""
        return _integrated(explained, self._baseline(explained), steps=self._steps)


def _integrated(
    explained: ExplainedPrompt, baseline: Embeddings, *, steps: int, start: int = 0
) -> TokenScores:
    """Scores of tokens; columns before `start`, where prompt and baseline are equal, score zero."""
    with explained.after(start):
        scores = captum.attr.IntegratedGradients(explained.values).attribute(
            explained.embeddings[:, start:].clone().requires_grad_(),
            baseline[:, start:],
            n_steps=steps,
            internal_batch_size=explained.rows,
        )
    return token_scores(functional.pad(scores, (0, 0, start, 0)), explained, baseline)


class DeepLift(_FromMean):
    """DeepLift (Shrikumar et al. 2017) by the rescale rule, from the mean embedding.

    Raises:
        UserError: captum has no rule for the model's activation functions.
    """

    def __init__(self, model: Model) -> None:
        _check_activations(model)
        super().__init__(model)

    def attribute(self, explained: ExplainedPrompt) -> TokenScores:
        """Scores that add up to the change in the target if only activations are nonlinear."""
        baseline = self._baseline(explained)
        inputs = explained.embeddings.clone().requires_grad_()
        with warnings.catch_warnings():
            # captum warns each time it sets and removes hooks.
            warnings.filterwarnings("ignore", message="Setting forward, backward hooks")
            # DeepLift's hooks compare the prompt with the baseline, which are two rows of one pass.
            scores = captum.attr.DeepLift(_Module(explained)).attribute(inputs, baseline)
        return token_scores(scores, explained, baseline)


class Occlusion(_FromMean):
    """Occlusion (Zeiler and Fergus 2014): each token in turn is replaced by the mean embedding."""

    @torch.no_grad()
    def attribute(self, explained: ExplainedPrompt) -> TokenScores:
        """The change in the target due to each token; the changes need not add up."""
        baseline = self._baseline(explained)
        window = (1, baseline.shape[-1])
        effects = captum.attr.Occlusion(explained.values).attribute(
            explained.embeddings,
            window,
            strides=window,
            baselines=baseline,
            perturbations_per_eval=explained.rows,
        )
        # captum assigns the effect of the whole token to each dimension.
        return token_scores(effects / baseline.shape[-1], explained, baseline)


class KernelShap:
    """KernelSHAP of segments (Lundberg and Lee 2017): Shapley values from random coalitions."""

    def __init__(self, model: Model | None, *, samples: int) -> None:
        self._samples = samples

    def attribute(self, explained: Played) -> SegmentScores:
        """Signed scores in the target's units, close to the exact values of `shapley`."""
        game = explained.game
        if len(game.segments) == 1:
            # captum draws only coalitions that are neither empty nor full; one segment allows none.
            without, whole = game.values([0, 1]).tolist()
            return SegmentScores({game.segments[0]: whole - without}, 0.0)
        fitted = _by_surrogate(captum.attr.KernelShap, explained, samples=self._samples)
        without, whole = game.values([0, 2 ** len(game.segments) - 1]).tolist()
        return replace(fitted, completeness_gap=sum(fitted.scores.values()) - (whole - without))


class Lime:
    """LIME of segments (Ribeiro et al. 2016): a LASSO fitted near the prompt, set up by captum."""

    def __init__(self, model: Model | None, *, samples: int, penalty: float) -> None:
        self._samples, self._penalty = samples, penalty

    def attribute(self, explained: Played) -> SegmentScores:
        """Signed scores in the target's units, shrunk by the LASSO's penalty."""
        lasso = partial(captum.attr.Lime, interpretable_model=SkLearnLasso(alpha=self._penalty))
        return _by_surrogate(lasso, explained, samples=self._samples)


def _by_surrogate(method: Any, explained: Played, *, samples: int) -> SegmentScores:
    """Weights that captum assigns to segments, from random coalitions seeded by the prompt's id."""
    game = explained.game

    def value(masks: Tensor) -> Tensor:
        bits = masks.long().tolist()
        coalitions = [sum(bit << player for player, bit in enumerate(row)) for row in bits]
        values = torch.from_numpy(game.values(coalitions))
        if not values.isfinite().all():
            raise FloatingPointError("a coalition's value is not finite")
        return values

    with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        # captum and scikit-learn warn that a fit to few samples may be poor.
        warnings.simplefilter("ignore")
        torch.manual_seed(zlib.crc32(explained.seed.encode()))
        full = torch.ones(1, len(game.segments))
        try:
            weights = method(value).attribute(
                full, torch.zeros_like(full), n_samples=samples, perturbations_per_eval=samples
            )
        except FloatingPointError:
            return SegmentScores.undefined(game.segments)
    return SegmentScores(dict(zip(game.segments, weights[0].tolist(), strict=True)))


class _Module(nn.Module):
    """The target as a module that contains the model, so captum's hooks reach its layers."""

    def __init__(self, explained: ExplainedPrompt) -> None:
        super().__init__()
        self._hf = explained.model.hf
        self._explained = explained

    def forward(self, embeddings: Embeddings) -> Values:
        """The target of each row, from one pass."""
        return self._explained.value(embeddings)


def token_scores(
    attributions: Any, explained: ExplainedPrompt, baseline: Embeddings
) -> TokenScores:
    """Attributions summed over each token's dimensions, with the completeness gap."""
    scores: Tensor = wide(attributions.detach()).sum(-1)
    (by_token,) = TokenScores.of(scores, explained.batch)
    return replace(by_token, completeness_gap=explained.gap(scores, baseline))


def mean_embedding(model: Model) -> Float[Tensor, " size"]:
    """The mean of the vocabulary's embeddings, after the model's own scaling."""
    vocabulary = torch.arange(model.text_config.vocab_size, device=model.device)
    chunks = torch.split(vocabulary, 8192)
    embed = reader_of(model).embed
    total = torch.stack([embed(ids).double().sum(0) for ids in chunks]).sum(0)
    return (total / len(vocabulary)).to(model.hf.dtype)


def _check_activations(model: Model) -> None:
    """Check that DeepLift has rules for the model's activation functions."""
    if model.kind is not CAUSAL:
        raise UserError(
            "captum's DeepLift has no rule for functions that are not modules, such as those in "
            f"the head of {model.name}, a {model.kind.name}; use captum:occlusion"
        )
    layer = model.layers[0].module
    for module in layer.get_submodule(model.architecture.mlp).modules():
        is_activation = not [*module.children(), *module.parameters()]
        if is_activation and type(module) not in (nn.Dropout, *SUPPORTED_NON_LINEAR):
            supported = ", ".join(sorted(kind.__name__ for kind in SUPPORTED_NON_LINEAR))
            raise UserError(
                f"captum's DeepLift has no rule for {type(module).__name__}, the activation "
                f"function of {model.name}: its result would be gradient times input under "
                f"another name. It has rules for {supported}; use captum:occlusion"
            )
