"""Export for other tools: prompts as tasks of other libraries, and activations as plain files."""
