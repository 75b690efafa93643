"""Soft scores: how a model divides its belief between the two answers, and the prompt's perplexity.

Source: Wang and Shi (2025), Section 4.1 and formula 5.
"""

import torch

from interp.models.model import Model
from interp.models.unembedding import final_states
from interp.reading.tokens import Batch
from interp.scoring.answer_tokens import AnswerTokenizer
from interp.scoring.answers import NOT_FINITE, Predictions, answer_rows, predict, token_logits
from interp.scoring.perplexity import perplexities
from interp.tables import Row


def soft_answer_rows(
    model: Model, batch: Batch, predictions: Predictions, perplexity: list[float]
) -> list[Row]:
    """One row a prompt, under the columns of the soft_answers table.

    `relative_positive` is p(positive) / (p(positive) + p(negative)), taken from the logits so that
    small probabilities do not vanish; `soft_accuracy` is the same share for the correct answer. A
    prompt with non-finite logits gets an error and no numbers.
    """
    finite = predictions.logits.isfinite().all(-1).tolist()
    logits = token_logits(
        predictions.logits,
        [(*answers.positive, *answers.negative) for answers in predictions.answers],
    )
    rows: list[Row] = []
    for index, (tokenized, answers) in enumerate(
        zip(batch.prompts, predictions.answers, strict=True)
    ):
        prompt = tokenized.prompt
        key: Row = {"model": model.name, "prompt_id": prompt.id}
        if not finite[index]:
            rows.append({**key, "error": NOT_FINITE})
            continue
        sizes = [len(answers.positive), len(answers.negative)]
        positive, negative = (option.logsumexp(0) for option in torch.split(logits[index], sizes))
        log_odds = positive - negative
        rows.append(
            {
                **key,
                "relative_positive": float(log_odds.sigmoid()),
                "soft_accuracy": float((log_odds if prompt.gold else -log_odds).sigmoid()),
                "perplexity": perplexity[index],
                "prompt_tokens": len(tokenized),
                "positive_token_ids": list(answers.positive),
                "negative_token_ids": list(answers.negative),
                "error": "",
            }
        )
    return rows


@torch.inference_mode()
def soft_score_batch(
    model: Model, batch: Batch, answer_tokens: AnswerTokenizer
) -> tuple[list[Row], list[Row]]:
    """The rows of the answers and of the soft_answers table, by one forward pass."""
    with final_states(model) as states:
        predictions = predict(model, batch, answer_tokens)
    perplexity = perplexities(model, batch, states[0], last_logits=predictions.logits)
    return (
        answer_rows(model, batch, predictions),
        soft_answer_rows(model, batch, predictions, perplexity),
    )
