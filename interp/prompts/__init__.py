"""Prompts with their segments and answers, prompt sets, and the systems that generate prompts."""
