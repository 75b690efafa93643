"""The results of each measurement, for display on the terminal, in files, pages and notebooks."""
