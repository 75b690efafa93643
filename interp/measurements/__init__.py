"""Measurements of a model, which turn prompts into rows of tables."""
