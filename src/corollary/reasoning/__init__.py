"""Reasoners: incrementally maintained materializations behind one protocol."""
