"""SPARQL 1.1 queries: parsed into an algebra, translated once to SQL, run by DuckDB or Spark."""
