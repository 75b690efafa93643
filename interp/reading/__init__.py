"""From prompts to tensors: chat templates, tokens, and batches within a memory budget."""
