"""Notebooks, scripts and ontology engineers: the surface of the library as they use it."""
