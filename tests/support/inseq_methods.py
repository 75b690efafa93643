"""Attribution by inseq (Sarti et al. 2023), with which Chan et al. measured.

inseq reads texts and finds the answer by the characters that follow the prompt. Here it gets the
token ids of the native path instead, so that both attribute the same sequence: without a second
BOS, an answer token merged with the prompt, or a padding token equal to a prompt token. It runs one
prompt at a time (as it always does with a forced answer), with eager attention.
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from inseq.data import BatchEncoding
from inseq.models.huggingface_model import HuggingfaceDecoderOnlyModel

from interp.attribution.explained import ExplainedPrompt
from interp.attribution.method import TokenScores
from interp.attribution.targets import Attributed, values_of
from interp.models.model import Model
from interp.scoring.answer_tokens import AnswerTokens
from interp.scoring.answers import Predictions


class _ExactIds(HuggingfaceDecoderOnlyModel):
    """inseq's model, which encodes each text to the given token ids."""

    def __init__(self, model: Model) -> None:
        self.token_ids: dict[str, list[int]] = {}
        super().__init__(model.hf, "saliency", tokenizer=model.tokenizer, device=str(model.device))

    def encode(
        self, texts: str | list[str], as_targets: bool = False, **options: Any
    ) -> BatchEncoding:
        """The ids of one text, with inseq's bookkeeping."""
        (text,) = [texts] if isinstance(texts, str) else texts
        ids = torch.tensor([self.token_ids[text]], device=self.device)
        return BatchEncoding(
            input_ids=ids,
            input_tokens=[self.tokenizer.convert_ids_to_tokens(self.token_ids[text])],
            attention_mask=torch.ones_like(ids),
            baseline_ids=torch.zeros_like(ids),
        )


class Saliency:
    """The L2 norm of the gradient at each token's embedding (Simonyan et al. 2014).

    inseq differentiates the target's probability, which gives the same shares as its log-odds if
    fp32 can hold them; for a contrast or margin it differentiates what the native methods do.
    """

    def __init__(self, model: Model) -> None:
        self._inseq = _Inseq(model)

    def attribute(self, explained: ExplainedPrompt) -> TokenScores:
        """Norms per unit of embedding, never negative."""
        options: dict[str, Any] = {}
        if explained.attributed.other is not None:
            options["attributed_fn"] = _difference(explained.attributed)
        return self._inseq.attribute(explained, "saliency", normalize=False, **options)


class Attention:
    """Attention of the last token (Bahdanau et al. 2015), averaged over heads and layers."""

    def __init__(self, model: Model) -> None:
        self._inseq = _Inseq(model)

    def attribute(self, explained: ExplainedPrompt) -> TokenScores:
        """Weights, never negative, which sum to 1."""
        return self._inseq.attribute(explained, "attention", normalize=True)


class _Inseq:
    """inseq's model around one of ours."""

    def __init__(self, model: Model) -> None:
        with _settings_restored(model):
            # inseq requires a BOS token even of models without one; only empty prompts use it.
            if model.hf.config.bos_token_id is None:
                model.hf.config.bos_token_id = model.hf.config.eos_token_id
            self._inseq = _ExactIds(model)

    def attribute(
        self, explained: ExplainedPrompt, method: str, *, normalize: bool, **options: Any
    ) -> TokenScores:
        """The scores of a prompt's tokens; `normalize` divides by their sum in each layer."""
        prompt, model = explained.prompt, explained.model
        text, continued = prompt.chat.text, prompt.chat.text + "…"
        self._inseq.token_ids = {
            text: list(prompt.token_ids),
            continued: [*prompt.token_ids, explained.attributed.own[0]],
        }
        with warnings.catch_warnings(), _settings_restored(model):
            # inseq's captum warns for each prompt that its gradient was not required before.
            warnings.filterwarnings("ignore", message="Input Tensor 0 did not already require")
            model.hf.set_attn_implementation("eager")
            output = self._inseq.attribute(
                text, continued, method=method, show_progress=False, **options
            )
        (sequence,) = output.sequence_attributions
        (scores,) = sequence.aggregate(normalize=normalize).target_attributions.T
        padded = torch.zeros(explained.batch.token_ids.shape, dtype=torch.float32)
        padded[0, explained.batch.unpadded(0)] = scores[: len(prompt)].float().cpu()
        (found,) = TokenScores.of(padded.to(model.device), explained.batch)
        return found


def _difference(attributed: Attributed) -> Any:
    def difference(args: Any) -> torch.Tensor:
        logits: torch.Tensor = args.forward_output.logits[:, -1]
        answers = (AnswerTokens({}),) * len(logits)
        return values_of(Predictions(logits, answers), [attributed] * len(logits))

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
