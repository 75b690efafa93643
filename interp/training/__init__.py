"""Training of models with Hugging Face's Trainer."""
