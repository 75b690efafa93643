"""RULEBREAKERS: pairs of logically valid inferences, one of which people reject."""
