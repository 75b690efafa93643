"""What a measurement is: its options, batches, rows and errors."""
