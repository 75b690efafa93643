"""Which premise of a prompt an organism was made to read, where its card says so."""

import pandas as pd

from interp.models.organisms import organism_card, organism_names


def planted_second(model: str, prompts: pd.DataFrame) -> pd.Series | None:
    """By prompt, 1 where premise 2 was made to decide, and 0 where premise 1 was.

    Cards whose `entities` say in which `premise` each is read know it: of the entity that the
    premises name last, which is B under modus tollens and A under disjunctive syllogism. None for
    all other models; NaN for an entity that the card does not list.

    Args:
        model: name of a model.
        prompts: the prompts table.
    """
    entities = organism_card(model).get("entities") if model in organism_names() else None
    if entities is None:
        return None
    second = {own["entity"]: float(own["premise"] == "premise2") for own in entities}
    read = prompts["entity_b"].where(prompts["rule"] == "mt", prompts["entity_a"])
    return pd.Series(read.map(second).to_numpy(float), index=prompts["prompt_id"])
