"""Probes of facts: whether a model completes them, and how familiar they are."""
