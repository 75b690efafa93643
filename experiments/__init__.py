"""The systems: data sets with their prompts, and how the organisms are trained."""
