"""Small models and tokenizers that tests are made of."""
