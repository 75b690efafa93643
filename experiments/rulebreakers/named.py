"""The contrasts of RULEBREAKERS that were named before any data were seen."""

from interp.prompts.systems import Contrast

NAMED = (
    Contrast("rule", ("mt", "ds")),
    Contrast("entity_group", ("geographical", "categorical")),
    Contrast("phrasing"),
    Contrast("model"),
)
"""What the paper makes claims on: the rules, the groups of entities, the spread over phrasings
("by over 0.4"), and the models."""
