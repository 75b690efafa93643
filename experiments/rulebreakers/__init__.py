"""RULEBREAKERS: pairs of inferences that logic allows and people reject, or accept."""

from interp_experiments.rulebreakers.templates import Reasoning, render

__all__ = ["Reasoning", "render"]
