"""What is damaged: each module makes the cases of one target."""
