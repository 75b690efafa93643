"""Steering: changes of the residual stream along directions, and their effects on answers."""
