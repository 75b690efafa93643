"""Forward measurements: answer probabilities and correctness."""
