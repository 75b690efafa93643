"""RULEBREAKERS: pairs of logically valid inferences, one of which people reject."""

from interp_experiments.rulebreakers.templates import Reasoning, render

__all__ = ["Reasoning", "render"]
