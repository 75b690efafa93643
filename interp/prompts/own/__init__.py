"""Pairs of one's own, from a table with one row per prompt."""
