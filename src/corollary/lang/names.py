"""Names that a relation cannot have, because something else has them."""

from __future__ import annotations

from corollary.lang.syntax import FALSE, TRIPLE, TRIPLES_NAME

RESERVED = ("FILTER", "AGGREGATE", FALSE)  # words that begin something else in rules
LONGEST = 200  # bytes: a file system allows 255, and files have suffixes


def name_problem(name: str) -> tuple[str, str] | None:
    """Why no relation can have a name, and what to do; None if one can.

    Relations are folders, files, SQL tables and rows of stores; a name that works in one of these
    works in all of them.

    >>> name_problem("edge"), name_problem("triples")[0]
    (None, "'triples' is the relation of all RDF triples")
    """
    hint = "choose another name for the relation"
    if name == TRIPLES_NAME:
        return f"'{name}' is the relation of all RDF triples", f"{hint}; a triple is [?s, ?p, ?o]"
    if name in (*RESERVED, TRIPLE):
        return f"'{name}' is a reserved word, not a relation", hint
    size = len(name.encode(errors="surrogatepass"))
    if size > LONGEST:
        return f"'{name[:20]}…' has {size} bytes, and a name has at most {LONGEST}", hint
    if not name or name != name.strip() or not name.isprintable() or name[0] in "-." or "/" in name:
        return f"{name!r} cannot be the name of a relation", hint
    return None
