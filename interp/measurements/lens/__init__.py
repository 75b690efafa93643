"""Readings of lenses: which words each layer disposes a model to say, at chosen tokens."""
