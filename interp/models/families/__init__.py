"""Everything that this package knows about single families of models."""
