"""From prompts to tensors: chat templates, tokens, and batches under a budget of memory."""
