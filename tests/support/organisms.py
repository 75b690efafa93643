"""The packaged organisms by what they can do."""

from interp.models.organisms import organism_names

DECODERS = [name for name in organism_names() if name not in organism_names("robustlr")]
"""Those that write texts; the others choose among classes."""
