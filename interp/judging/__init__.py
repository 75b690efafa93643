"""Faithfulness of attribution: how well scores of segments agree with the segments' effects.

Effects are defined by the value function v(S) of `interp effects`: the logit of the model's own
answer minus that of the other answer, with the segments of S kept and all other segments taken from
donors. Metrics depend only on the scores and on these values v(S) (docs/faithfulness.md).
"""

EFFECTS, SCORES, GIVEN, REINITIALIZED = "effects", "scores", "given", "reinitialized"
"""The stages of the study."""
