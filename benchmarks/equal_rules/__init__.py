"""The same rules over the same numbers by Corollary and other rule systems, from file to file."""
