"""Engines: the places where rules are evaluated. They see numbers, never terms."""
