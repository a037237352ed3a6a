"""Modules: rules of a stratum that an algorithm of their own evaluates."""
