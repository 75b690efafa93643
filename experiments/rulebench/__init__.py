"""RuleBench: questions to be answered by one golden rule among noise rules (Sun et al. 2024)."""
