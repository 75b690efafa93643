"""Edges: effects between components."""
