"""Modules: rules of a stratum that an algorithm of their own evaluates."""

from corollary.algorithms.modular.framework import Module
from corollary.algorithms.modular.recognize import register, registered

__all__ = ["Module", "register", "registered"]
