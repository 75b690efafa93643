"""Statistics for tables of any origin: intervals, tests, resampling and mixed models."""
