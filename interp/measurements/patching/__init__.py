"""Patches: effects of activations from the other prompt of a pair."""
