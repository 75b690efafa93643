"""The making of the packaged organisms: recipe, text, training, card, verification."""
