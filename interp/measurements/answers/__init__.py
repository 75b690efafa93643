"""Answers: probabilities of the options, written replies, accuracies and comparisons."""
