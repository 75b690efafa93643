"""Prompts as tasks of other evaluation libraries, and as a described data set."""
