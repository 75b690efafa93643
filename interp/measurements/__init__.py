"""Measurements of a model: rows of tables from prompts."""
