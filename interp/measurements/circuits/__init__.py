"""Circuits: how a part of the model's edges answers by itself."""
