"""Other libraries that run patches, imported only when asked for."""
