"""Thoughts: written, read sentence by sentence, exchanged."""
