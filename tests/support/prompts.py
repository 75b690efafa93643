"""Prompts shared by many tests; to generate all of them takes seconds."""

from functools import cache

import interp
from interp.prompts.prompt_set import PromptSet


@cache
def some_prompts(pairs: int) -> PromptSet:
    return interp.load_prompts(limit=pairs)
