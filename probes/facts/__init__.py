"""Probes of facts: whether a model knows them, and how familiar they are."""
