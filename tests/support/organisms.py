"""The packaged organisms, by kind."""

from interp.models.organisms import organism_names

DECODERS = [name for name in organism_names() if name not in organism_names("robustlr")]
"""Organisms that generate texts; the others choose among classes."""
