"""Readings of lenses: which words each layer makes a model likely to say, at chosen tokens."""
