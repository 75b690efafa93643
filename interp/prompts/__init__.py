"""Prompts with their segments and answers, sets of them, and the systems that they come from."""
