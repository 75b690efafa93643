"""How the packaged organisms are made: recipe, text, training, card and verification."""
