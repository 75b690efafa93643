"""Speed next to other libraries, and error rates of tests: `python -m benchmarks.NAME`."""
