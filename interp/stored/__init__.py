"""Texts that other tools stored: logs and samples with models' answers and thoughts."""
