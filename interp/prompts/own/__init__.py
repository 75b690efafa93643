"""The user's own pairs, from a table with one row per prompt."""
