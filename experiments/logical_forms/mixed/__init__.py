"""Linear mixed-effects models with one grouping, and estimates pooled over groups."""
