"""Edges between the components of a causal model: their graph, estimates and exact effects."""
