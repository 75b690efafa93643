"""Small models, tokenizers, prompts and runs for the tests."""
