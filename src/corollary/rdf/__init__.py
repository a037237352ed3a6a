"""RDF in and out: files of every syntax, frames and graphs as columns of ids."""
