"""Tables made from measurements: accuracy, scores, ratios, effects and comparisons."""
