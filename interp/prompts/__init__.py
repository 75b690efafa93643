"""Prompts, their segments and answers, and their tokens for a model."""
