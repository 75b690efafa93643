"""A few facts that many probe tests ask for."""

from functools import cache

from interp.prompts.prompt import Prompt
from interp.prompts.systems import load_facts

CITIES = ("Stockholm", "Washington, D.C.", "Tunis", "Kathmandu", "Bogotá", "Conakry")


@cache
def some_facts() -> tuple[Prompt, ...]:
    facts = {prompt.factors["entity_b"]: prompt for prompt in load_facts()}
    return tuple(facts[name] for name in (*CITIES, "goose", "table tennis"))
