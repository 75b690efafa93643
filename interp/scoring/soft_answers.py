"""Soft scores: how a model divides its belief among the options, and the prompt's perplexity.

Source: Wang and Shi (2025), Section 4.1 and formula 5.
"""

from collections.abc import Sequence

import torch

from interp.models.model import Model
from interp.models.unembedding import final_states
from interp.prompts.prompt import Prompt
from interp.reading.tokens import Batch
from interp.scoring.answer_tokens import AnswerTokenizer
from interp.scoring.answers import AnswerRows, answer_tables, predict
from interp.scoring.likelihood import perplexities
from interp.tables import Row


@torch.inference_mode()
def soft_score_batch(
    model: Model, batch: Batch, answer_tokens: AnswerTokenizer
) -> list[AnswerRows]:
    """The rows of each prompt, including one of soft_answers, by one forward pass.

    Soft accuracy is the correct option's share of the probability of all options; null if the
    prompt has no options to choose from. A prompt with non-finite logits gets an error and no
    numbers.
    """
    with final_states(model) as states:
        predictions = predict(model, batch, answer_tokens)
    perplexity = perplexities(model, batch, states[0], last_logits=predictions.logits)
    tables = answer_tables(model, batch, predictions)
    for rows, tokenized, value in zip(tables, batch.prompts, perplexity, strict=True):
        (answer,) = rows["answers"]
        row: Row = {key: answer[key] for key in ("model", "prompt_id", "error")}
        if not answer["error"]:
            row |= {
                "soft_accuracy": _share_of(tokenized.prompt, rows["option_probabilities"]),
                "perplexity": value,
                "prompt_tokens": len(tokenized),
            }
        rows["soft_answers"] = [row]
    return tables


def _share_of(prompt: Prompt, options: Sequence[Row]) -> float | None:
    """The correct option's relative probability."""
    shares: dict[str, float | None] = {
        row["option"]: row["relative_probability"] for row in options
    }
    return shares[prompt.answer.gold]
