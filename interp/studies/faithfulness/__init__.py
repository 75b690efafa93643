"""Faithfulness: which attribution method tells the truth of a model, and how sure that is."""
