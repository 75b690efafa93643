"""Statistics for tables from any source: intervals, tests, resampling and mixed models."""
