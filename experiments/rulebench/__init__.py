"""RuleBench: questions that one golden rule among noise rules answers (Sun et al. 2024)."""
