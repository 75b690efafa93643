"""RobustLR (Sanyal, Liao and Ren 2022): minimal edits and paraphrases of deductive theories."""
