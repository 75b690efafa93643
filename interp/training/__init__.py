"""Training of models, by Hugging Face's Trainer."""
