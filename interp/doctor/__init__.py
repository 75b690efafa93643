"""What is to be known of a model, its tokenizer and this machine before anything long begins."""
