"""Circuits: edges between the components of a causal model, scored, run exactly, and chosen."""
