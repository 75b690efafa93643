"""Activation patching: effects of another prompt's activations on the answer."""
