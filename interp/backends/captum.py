"""Attribution by captum: integrated gradients, input x gradient, DeepLift and occlusion.

Each explains the difference of the target between the prompt's embeddings and a baseline, one
prompt at a time: every token's embedding replaced by the vocabulary's mean, or by zeros for input x
gradient, which knows no other. (Zeros, captum's default, serve models with RMS norms badly: near
them any direction is normed to full length, and on the organisms integrated gradients with 200
steps missed the difference by 2 to 27 logits, from the mean by at most 0.04.) A token's score is
the absolute value of its attribution, summed over the embedding's dimensions, as a share of the
prompt's.
"""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from captum.attr import DeepLift, InputXGradient, IntegratedGradients, Occlusion
from captum.attr._core.deep_lift import SUPPORTED_NON_LINEAR
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor, nn

from interp.attribution.normalize import as_shares
from interp.attribution.one_pass import TokenScores
from interp.attribution.targets import log_odds, target_tokens
from interp.errors import UserError
from interp.models.architectures import layers_of
from interp.models.kinds import CAUSAL
from interp.models.model import Model
from interp.reading.readers import reader_of
from interp.reading.tokens import Batch, TokenizedPrompt, pad
from interp.scoring.answers import Predictions

Embeddings = Float[Tensor, "row token size"]
Attributed = Float[Tensor, " row"]

INTEGRATION_STEPS = 200
"""Points of integrated gradients (Gauss-Legendre); with captum's 50 up to 3.7 of 12 logits are
missed on the organisms."""

VOCABULARY_ROWS = 8192
"""Embeddings that are averaged at once."""

FORWARD_ROWS = 50
"""Rows of one forward pass."""

Gaps = dict[str, list[float]]
"""Method to the completeness gap of each prompt of a batch, in nats (logits for a contrast)."""


class CaptumMethods:
    """Captum's methods for one model.

    Raises:
        UserError: DeepLift on a model whose activation functions captum has no rule for.
    """

    def __init__(self, model: Model, *, methods: Sequence[str]) -> None:
        if "deep_lift" in methods:
            _check_activations(model)
        self._model = model
        self._methods = methods
        self._mean = _mean_embedding(model)

    def attribute(
        self, batch: Batch, predictions: Predictions, *, target: str
    ) -> tuple[TokenScores, Gaps]:
        """Token scores of a batch by each method, and how far each is from adding up.

        The completeness gap is the sum of a prompt's attributions minus the difference of the
        target between prompt and baseline, which they are to explain.
        """
        shape = tuple(batch.token_ids.shape)
        scores: TokenScores = {name: np.zeros(shape, dtype=np.float32) for name in self._methods}
        gaps: Gaps = {name: [] for name in self._methods}
        tokens, others = target_tokens(target, batch, predictions)
        with self._model.measuring(), torch.enable_grad():
            for index, prompt in enumerate(batch.prompts):
                other = None if others is None else others[index]
                explained = _Target(self._model, prompt, tokens[index], other, self._mean)
                for name in self._methods:
                    shares, gap = explained.explain(name)
                    scores[name][index, batch.unpadded(index)] = shares
                    gaps[name].append(gap)
        return scores, gaps


class _Target(nn.Module):
    """The target of one prompt as a function of its embeddings; a module, as DeepLift needs."""

    def __init__(
        self,
        model: Model,
        prompt: TokenizedPrompt,
        token: Int[Tensor, ""],
        other: Int[Tensor, ""] | None,
        mean: Float[Tensor, " size"],
    ) -> None:
        super().__init__()
        self._reader = reader_of(model)
        self._hf = model.hf
        self._token, self._other, self._mean = token, other, mean
        self._batch = pad(model, [prompt])
        self._own = self._batch.unpadded(0)
        with torch.no_grad():
            self._embeddings = self._reader.embed(self._batch)

    def forward(self, embeddings: Embeddings) -> Attributed:
        """The target of each row, in nats, or logits for a contrast."""
        logits = self._reader.answer_logits(self._batch, embeddings=embeddings)
        if self._other is None:
            return log_odds(logits, self._token.expand(len(logits)))
        return logits[:, self._token] - logits[:, self._other]

    def explain(self, method: str) -> tuple[NDArray[np.float32], float]:
        """Shares of the prompt's tokens, and the completeness gap."""
        inputs = self._embeddings.clone().requires_grad_()
        baseline = torch.zeros_like(inputs)
        if method != "input_x_gradient":
            baseline = baseline + self._mean
        attributions: Tensor = _METHODS[method](self, inputs, baseline).detach().float().sum(-1)
        with torch.no_grad():
            difference = self(inputs) - self(baseline)
        gap = attributions[:, self._own].double().sum() - difference.double().sum()
        shares = as_shares(attributions.abs(), self._batch)[0, self._own]
        return shares.cpu().numpy(), float(gap)


def _mean_embedding(model: Model) -> Float[Tensor, " size"]:
    """The mean of the vocabulary's embeddings, as the model scales them."""
    embedding = model.hf.get_input_embeddings()
    vocabulary = torch.arange(model.hf.config.get_text_config().vocab_size, device=model.device)
    with torch.no_grad():
        chunks = torch.split(vocabulary, VOCABULARY_ROWS)
        total = torch.stack([embedding(ids).double().sum(0) for ids in chunks]).sum(0)
        return (total / len(vocabulary)).to(model.hf.dtype)


def _integrated_gradients(target: _Target, inputs: Embeddings, baseline: Embeddings) -> Any:
    return IntegratedGradients(target).attribute(
        inputs, baseline, n_steps=INTEGRATION_STEPS, internal_batch_size=FORWARD_ROWS
    )


def _input_x_gradient(target: _Target, inputs: Embeddings, baseline: Embeddings) -> Any:
    return InputXGradient(target).attribute(inputs)


def _deep_lift(target: _Target, inputs: Embeddings, baseline: Embeddings) -> Any:
    with warnings.catch_warnings():
        # captum tells each time that it sets hooks and removes them again.
        warnings.filterwarnings("ignore", message="Setting forward, backward hooks")
        return DeepLift(target).attribute(inputs, baseline)


def _occlusion(target: _Target, inputs: Embeddings, baseline: Embeddings) -> Any:
    """One token at a time; captum gives each dimension the effect of the whole token."""
    window = (1, inputs.shape[-1])
    with torch.no_grad():
        effects = Occlusion(target).attribute(
            inputs.detach(),
            window,
            strides=window,
            baselines=baseline,
            perturbations_per_eval=FORWARD_ROWS,
        )
    return effects / inputs.shape[-1]


_METHODS = {
    "integrated_gradients": _integrated_gradients,
    "input_x_gradient": _input_x_gradient,
    "deep_lift": _deep_lift,
    "occlusion": _occlusion,
}


def _check_activations(model: Model) -> None:
    """Check that DeepLift's rules reach the model's activation functions."""
    if model.kind is not CAUSAL:
        raise UserError(
            "captum's DeepLift has no rule for functions that are no modules, such as those in the "
            f"head of {model.name}, a {model.kind.name}; take integrated_gradients"
        )
    mlp = layers_of(model.hf, model.architecture)[0].get_submodule(model.architecture.mlp)
    activations = [
        module
        for module in mlp.modules()
        if not list(module.children())
        and not any(True for _ in module.parameters())
        and not isinstance(module, nn.Dropout)
    ]
    for module in activations:
        if type(module) not in SUPPORTED_NON_LINEAR:
            known = ", ".join(sorted(kind.__name__ for kind in SUPPORTED_NON_LINEAR))
            raise UserError(
                f"captum's DeepLift has no rule for {type(module).__name__}, the activation "
                f"function of {model.name}: its result would be gradient times input under "
                f"another name. It has rules for {known}; take integrated_gradients"
            )
