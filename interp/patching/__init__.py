"""Activation patching: how another prompt's activations affect the answer."""
