"""Which attribution method agrees with a model's causal effects, and how sure that is."""
