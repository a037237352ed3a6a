"""Facts in files: relations as tab- or comma-separated tables, triples as N-Triples."""
