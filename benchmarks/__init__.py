"""Measurements beside the peers, each run by `python -m benchmarks.NAME`."""
