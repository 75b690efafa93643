"""What notebooks get: the tables of a measurement as data frames, with a summary and a display."""
