"""How the packaged organisms are made: recipe, text, training, card, verification."""
