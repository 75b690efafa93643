"""Attribution by inseq, the paper's own implementation.

inseq reads texts and finds the answer by the characters that follow the prompt. Here it is handed
the token ids of the native path instead, so that both attribute the same sequence: no second BOS,
no answer token that merges with the prompt, no padding token that equals a prompt token. It runs
one prompt at a time (as it does with a forced answer in any case), with eager attention.
"""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from interp.attribution.one_pass import TokenScores
from interp.attribution.targets import target_tokens
from interp.errors import UserError
from interp.models.kinds import CAUSAL
from interp.models.model import Model
from interp.reading.tokens import Batch, TokenizedPrompt
from interp.scoring.answer_tokens import AnswerTokenizer
from interp.scoring.answers import Predictions, predict

try:
    from inseq.data import BatchEncoding
    from inseq.models.huggingface_model import HuggingfaceDecoderOnlyModel
except ImportError as error:
    raise UserError(
        "the backend inseq is not installed; install it without its outdated pins by "
        "pip install --no-deps inseq (needs also: pip install treescope)"
    ) from error

_METHODS = {"gradient": "saliency", "attention": "attention"}
"""Our method names to inseq's."""


class _ExactIds(HuggingfaceDecoderOnlyModel):  # type: ignore[misc]  # inseq has no types
    """inseq's model, encoding each text to the token ids that it was told."""

    def __init__(self, model: Model) -> None:
        self.token_ids: dict[str, list[int]] = {}
        super().__init__(model.hf, "saliency", tokenizer=model.tokenizer, device=str(model.device))

    def encode(
        self, texts: str | list[str], as_targets: bool = False, **options: Any
    ) -> BatchEncoding:
        """The ids of one text, with inseq's own bookkeeping around them."""
        (text,) = [texts] if isinstance(texts, str) else texts
        ids = torch.tensor([self.token_ids[text]], device=self.device)
        return BatchEncoding(
            input_ids=ids,
            input_tokens=[self.tokenizer.convert_ids_to_tokens(self.token_ids[text])],
            attention_mask=torch.ones_like(ids),
            baseline_ids=torch.zeros_like(ids),
        )


class InseqBackend:
    """Attributes batches with inseq; answers come from the same forward pass as everywhere.

    Raises:
        UserError: the model is no causal language model.
    """

    def __init__(self, model: Model) -> None:
        if model.kind is not CAUSAL:
            raise UserError(
                f"{model.name} is a {model.kind.name}; the backend inseq takes causal language "
                "models; leave the backend out"
            )
        with _settings_restored(model):
            # inseq wants a BOS token even where the model has none; it opens empty prompts only.
            if model.hf.config.bos_token_id is None:
                model.hf.config.bos_token_id = model.hf.config.eos_token_id
            self._inseq = _ExactIds(model)

    def attribute(
        self,
        model: Model,
        batch: Batch,
        answer_tokens: AnswerTokenizer,
        *,
        methods: Sequence[str],
        target: str,
    ) -> tuple[Predictions, TokenScores]:
        """Predictions and token scores of a batch, by each of `methods`.

        inseq differentiates the probability of the target token, or the difference of two logits
        for the contrast: the same shares as the native path where fp32 can hold them.
        """
        with model.measuring(), torch.no_grad():
            predictions = predict(model, batch, answer_tokens)
        width = batch.token_ids.shape[1]
        scores = {
            method: np.zeros((len(batch.prompts), width), dtype=np.float32) for method in methods
        }
        with model.measuring(), _settings_restored(model):
            model.hf.set_attn_implementation("eager")
            tokens, others = target_tokens(target, batch, predictions)
            for index, prompt in enumerate(batch.prompts):
                other = None if others is None else int(others[index])
                for method in methods:
                    scores[method][index, batch.unpadded(index)] = self._scores(
                        prompt, method, int(tokens[index]), other
                    )
        return predictions, scores

    def _scores(
        self, prompt: TokenizedPrompt, method: str, positive: int, negative: int | None
    ) -> NDArray[np.float32]:
        text, continued = prompt.chat.text, prompt.chat.text + "…"
        self._inseq.token_ids = {
            text: list(prompt.token_ids),
            continued: [*prompt.token_ids, positive],
        }
        contrast = {} if negative is None else {"attributed_fn": _logit_difference(negative)}
        with warnings.catch_warnings():
            # captum, under inseq, says of each prompt that it had to ask for its gradient.
            warnings.filterwarnings("ignore", message="Input Tensor 0 did not already require")
            output = self._inseq.attribute(
                text,
                continued,
                method=_METHODS[method],
                show_progress=False,
                **(contrast if method == "gradient" else {}),
            )
        (sequence,) = output.sequence_attributions
        (scores,) = sequence.aggregate().target_attributions.T
        own: NDArray[np.float32] = scores[: len(prompt)].float().cpu().numpy()
        return own


def _logit_difference(negative: int) -> Any:
    def difference(args: Any) -> torch.Tensor:
        logits = args.forward_output.logits[:, -1]
        own: torch.Tensor = logits.gather(1, args.target_ids.reshape(-1, 1)).squeeze(1)
        other: torch.Tensor = logits[:, negative]
        return own - other

    return difference


@contextmanager
def _settings_restored(model: Model) -> Iterator[None]:
    """Undo what inseq sets on model and tokenizer."""
    config, tokenizer = model.hf.config, model.tokenizer
    implementation = model.attn_implementation
    padding, opening = config.pad_token_id, config.bos_token_id
    special = (tokenizer.pad_token, tokenizer.unk_token)
    try:
        yield
    finally:
        model.hf.set_attn_implementation(implementation)
        config.pad_token_id, config.bos_token_id = padding, opening
        tokenizer.pad_token, tokenizer.unk_token = special
