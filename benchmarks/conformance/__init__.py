"""Who computes what they say: libraries held to plain hooks and finite differences."""
