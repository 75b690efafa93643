"""Mixed-effects models, linear and logistic, with crossed random effects."""
