"""Attributions: scores of tokens and segments, and ratios of premises."""
