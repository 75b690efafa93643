"""Studies: several measurements of the same models, and one report on them."""
