"""How the packaged organisms are made: recipes, text, training, cards and verification."""
