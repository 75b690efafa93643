"""Activations: vectors at chosen tokens, and their files."""
