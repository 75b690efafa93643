"""What is known about a loaded model besides its answers, for cautions."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from interp.measuring.spec import Spec
from interp.prompts.prompt import Prompt

if TYPE_CHECKING:
    from interp.models.model import Model

Replies = tuple[int, int, str, bool, int, Mapping[str, int]]
"""What a model replies to a few prompts (`interp.scoring.replies.Replies`)."""


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
    replies: Replies | None = None
    """What it replies to a few prompts; None if that was not read."""


def facts_of(
    model: "Model", prompts: Sequence[Prompt], spec: Spec, *, thorough: bool = False
) -> ModelFacts:
    """What is known about a loaded model besides its answers to the prompts.

    Args:
        model: the model.
        prompts: the prompts.
        spec: the measurement, which tells how many replies are read.
        thorough: whether to try other ways of asking of any model (`first_replies`).
    """
    # These import torch.
    from interp.scoring.own_thoughts import thought_surprise
    from interp.scoring.replies import first_replies
    from interp.scoring.rounding import logit_spacing

    texts, surprise = model.thought_texts, thought_surprise(model, prompts)
    return ModelFacts(
        model.dtype,
        model.own_system_prompt,
        logit_spacing(model, prompts),
        model.attention_layers,
        model.reads_tokens_again,
        texts="" if texts is None else texts.file,
        unfitting=() if texts is None else texts.problems,
        surprise=None if surprise is None else (surprise.mean, surprise.se),
        replies=first_replies(model, prompts, spec.replies_read, thorough=thorough),
    )
