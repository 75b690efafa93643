"""Numbers over prompts or pairs, each declared once: values, intervals, tests and how they look."""
