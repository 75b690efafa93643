"""Measurements that ask what a model knows."""
