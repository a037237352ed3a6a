"""Materialization and maintenance, over `core` alone: one file for each paper's algorithm."""
