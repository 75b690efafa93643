"""Faithfulness of attribution: how well scores of segments say what the segments do.

What segments do is the value function v(S) of `interp effects`: the logit of the model's own answer
over the other, where the segments of S are kept and all others come from donors. Metrics are
functions of scores and of these values alone (docs/faithfulness.md).
"""

EFFECTS, SCORES, REINITIALIZED = "effects", "scores", "reinitialized"
"""The stages of the study."""
