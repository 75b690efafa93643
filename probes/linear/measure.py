"""The residual stream at chosen tokens of each prompt, before layer 0 and after each layer."""

from collections.abc import Iterator
from functools import partial

import pandas as pd
import torch
from jaxtyping import Float
from torch import Tensor

from interp import Model, UserError
from interp.extend import Measurement, PromptRows, measuring
from interp_probes.specs import LAST_TOKEN, Residuals


def residuals(model: Model, spec: Residuals, *, batch_tokens: int | None = None) -> Measurement:
    """Answers and the residual stream at selected positions, in one forward pass.

    Raises:
        UserError: during measurement, a prompt has no segment with a given name.
    """
    answer_tokens = measuring.AnswerTokenizer(model, spec.answers)
    after = [("resid_post", layer) for layer in range(measuring.layer_count(model))]
    locations = {key: measuring.locate(model, *key) for key in [("resid_pre", 0), *after]}

    def measure_batch(batch: measuring.Batch) -> list[PromptRows]:
        places = [[_place(p, position) for position in spec.positions] for p in batch.prompts]
        with torch.inference_mode(), model.measuring():
            with measuring.vectors_at(locations, batch, places) as vectors:
                answers = [answer_tokens(prompt) for prompt in batch.prompts]
                prompt_pass = measuring.read_prompts(model, batch, answers)
            predictions = prompt_pass.predictions()
        stream = torch.stack([vectors[key][:, 0] for key in locations], dim=1)
        by_prompt = torch.split(stream, len(spec.positions))
        of_prompts = measuring.answer_tables(model, batch, predictions)
        residual_rows = map(partial(_rows, model), batch.prompts, places, by_prompt)
        return [
            {"answers": tables["answers"], "residuals": list(rows)}
            for tables, rows in zip(of_prompts, residual_rows, strict=True)
        ]

    budget = measuring.token_budget(model, batch_tokens)
    return Measurement(model, spec, budget, measure_batch, partial(measuring.answer_error, model))


def _place(tokenized: measuring.TokenizedPrompt, position: str) -> measuring.Place:
    if position == LAST_TOKEN:
        return measuring.Place(position, (len(tokenized) - 1,))
    if position not in tokenized.segments:
        known = ", ".join([LAST_TOKEN, *tokenized.segments])
        raise UserError(
            f"prompt {tokenized.prompt.id} has no position {position!r}; it has {known}"
        )
    return measuring.Place(position, (tokenized.segments[position][1] - 1,))


def _rows(
    model: Model,
    tokenized: measuring.TokenizedPrompt,
    places: list[measuring.Place],
    vectors: Float[Tensor, "place layer size"],
) -> Iterator[measuring.Row]:
    ids = {"model": model.name, "prompt_id": tokenized.prompt.id}
    for place, layers in zip(places, vectors, strict=True):
        for layer, vector in enumerate(layers):
            yield {**ids, "position": place.group, "layer": layer, "vector": vector.numpy()}


def of_vectors(vectors: pd.DataFrame) -> pd.DataFrame:
    """The residuals table from `vectors` that were read elsewhere (`read_hidden_states`).

    They are rows of `activation_vectors` for single tokens, at `resid_pre` of layer 0 and at
    `resid_post`.

    Raises:
        UserError: a vector is from another site or is an average over tokens.
    """
    after = vectors["site"] == "resid_post"
    if not (after | ((vectors["site"] == "resid_pre") & (vectors["layer"] == 0))).all():
        raise UserError("linear probes use resid_pre of layer 0 and resid_post; omit other sites")
    if (vectors["tokens"] != 1).any() or vectors["position"].isna().any():
        raise UserError("linear probes use single tokens; record the last token of each segment")
    position = vectors["group"].replace({measuring.LAST: LAST_TOKEN})
    table = vectors[["model", "prompt_id", "layer", "vector"]]
    return table.assign(position=position, layer=vectors["layer"] + after)
