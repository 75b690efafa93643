"""Tables derived from measurements: accuracy, scores, ratios, effects and comparisons."""
