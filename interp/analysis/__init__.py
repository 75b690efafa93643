"""Small tables from the measured ones."""
