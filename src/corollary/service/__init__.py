"""The HTTP service: SPARQL, changes and proofs of a store, and a page to look at them."""
