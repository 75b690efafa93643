"""Tests of the texts that other tools stored."""
