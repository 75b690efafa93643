"""Measurements of what a model knows."""
