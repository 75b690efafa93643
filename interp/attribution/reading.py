"""The two calls by which attribution reads a model."""

from jaxtyping import Float, Int
from torch import Tensor

from interp.models.model import Model
from interp.reading.readers import reader_of
from interp.reading.tokens import Batch
from interp.scoring.answer_tokens import AnswerTokenizer
from interp.scoring.answers import Predictions, predict


def embed(model: Model, token_ids: Int[Tensor, "*shape"]) -> Float[Tensor, "*shape size"]:
    """The embeddings of tokens, as the model scales them, without a gradient."""
    return reader_of(model).embed(token_ids).detach()


def predict_from(
    model: Model,
    batch: Batch,
    answer_tokens: AnswerTokenizer,
    embeddings: Float[Tensor, "batch token size"],
) -> Predictions:
    """One forward pass that reads embeddings in place of the batch's tokens.

    Raises:
        UserError: the model reads tokens alone.
    """
    return predict(model, batch, answer_tokens, embeddings=embeddings)
