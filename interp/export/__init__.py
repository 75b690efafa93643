"""Exchange with other tools: prompts as tasks, answers as logs, and activations from vLLM."""
