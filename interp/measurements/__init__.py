"""Measurements of a model, which turn prompts into table rows."""
