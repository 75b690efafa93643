"""Linear probes: what activations say about the answer."""
