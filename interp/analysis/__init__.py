"""Tables made from what was measured: accuracy, scores, ratios, effects and comparisons."""
