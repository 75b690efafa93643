"""Token scores by each method, and what they give to each premise."""
