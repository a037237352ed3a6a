"""Modules: recursive rules of a stratum that a specialized algorithm evaluates."""

from corollary.algorithms.modular.framework import Module
from corollary.algorithms.modular.recognize import register, registered

__all__ = ["Module", "register", "registered"]
