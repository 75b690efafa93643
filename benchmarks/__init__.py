"""Speed compared with other libraries, and error rates of tests: `python -m benchmarks.NAME`."""
