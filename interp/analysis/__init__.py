"""Statistics and summary tables of what was measured."""
