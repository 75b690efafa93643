"""Activation patching: the effect on the answer of activations that come from another prompt."""
