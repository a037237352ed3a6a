"""Materialization and incremental maintenance over `core`: one file per paper."""
