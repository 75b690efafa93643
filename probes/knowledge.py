"""Which facts a model knows: its greedy completion names the expected answer (Section 4.1)."""

import pandas as pd

from interp.measurements.core import Measurement, PromptRows
from interp.measurements.generation import GenerationMeasurement
from interp.models.model import Model
from interp.prompts.prompt import Prompt
from interp.reading.budget import token_budget
from interp.reading.tokens import Batch
from interp.scoring.generation import Decoding, generate
from interp.tables import Row
from interp_probes.specs import Knowledge

COMPLETION_TOKENS = 32
"""Most tokens of a completion."""

FILTERED_GROUPS = ("geographical",)
"""Entity groups whose unknown pairs are excluded. The paper checked categorical pairs by hand,
because models answer them in many correct ways, and excluded none (Appendix C)."""


def knowledge(model: Model, spec: Knowledge, *, batch_tokens: int | None = None) -> Measurement:
    """Measure which of the facts from `load_facts` a model knows.

    Raises:
        UserError: the budget is less than one token.
    """
    decoding = Decoding(max_new_tokens=COMPLETION_TOKENS)

    def measure_batch(batch: Batch) -> list[PromptRows]:
        with model.measuring():
            texts = generate(model, batch, decoding)
        return [
            # Text generated from logits that are not finite is not the model's.
            {"knowledge": [_row(model, tokenized.prompt, text.text if text.finite else "")]}
            for tokenized, text in zip(batch.prompts, texts, strict=True)
        ]

    budget = token_budget(model, batch_tokens)
    return GenerationMeasurement(
        model,
        spec,
        budget,
        measure_batch,
        new_tokens=COMPLETION_TOKENS,
    )


def _row(model: Model, prompt: Prompt, completion: str) -> Row:
    matched = prompt.answer.judge(completion).answer
    return {
        "model": model.name,
        "prompt_id": prompt.id,
        "completion": completion,
        "known": bool(matched),
        "matched": matched,
    }


def excluded(knowledge_table: pd.DataFrame, facts: pd.DataFrame) -> pd.DataFrame:
    """The facts that any model fails: which models, what each said, whether to exclude the pair.

    Args:
        knowledge_table: the knowledge table of all models of a study.
        facts: the facts' prompts table, with prompt_id, category, entity_group, entity_a, entity_b.

    Returns:
        One row per failed fact, in the order of `facts`: its prompt_id, category, entity_group,
        entity_a, entity_b; excluded; failed_by, the models' names; why, what each of them said.
    """
    failed = knowledge_table[~knowledge_table["known"].astype(bool)]
    said = failed["model"] + " said " + failed["completion"].map(repr)
    by_fact = pd.DataFrame(
        {
            "failed_by": failed.groupby("prompt_id")["model"].agg(", ".join),
            "why": said.groupby(failed["prompt_id"]).agg("; ".join),
        }
    )
    columns = ["prompt_id", "category", "entity_group", "entity_a", "entity_b"]
    rows = facts[columns].merge(by_fact, left_on="prompt_id", right_index=True)
    rows.insert(len(columns), "excluded", rows["entity_group"].isin(FILTERED_GROUPS))
    return rows.reset_index(drop=True)
