"""Facts in files: relations as tab- or comma-separated tables, triples as N-Triples."""

FORMATS = ("facts", "csv", "tsv", "parquet", "arrow", "jsonl")
