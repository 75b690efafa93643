"""Results of each measurement, for display on the terminal and in files, pages and notebooks."""
