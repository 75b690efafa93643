"""Lenses: directions of the residual stream that a model turns into saying chosen words."""
