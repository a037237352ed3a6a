"""Data to try and to measure with."""
