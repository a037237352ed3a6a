"""Texts of N-Triples and N-Quads, right and wrong, and what the library finds in them."""

from __future__ import annotations

import pyoxigraph
from hypothesis import strategies as st

from corollary.rdf.library import LIBRARY

XSD = "http://www.w3.org/2001/XMLSchema#"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"

# A few IRIs that meet again, some that are unusual, and some that are wrong.
_common = [f"http://example.org/{name}" for name in ("a", "b", "a-long-name-of-more-than-8-bytes")]
_unusual = [
    "urn:a", "a:", "a+b-c.d:x", "file:///a", "http://", "http://h:80/", "http://u@h/", "http://[::1]/",
    "http://a/%41b", "http://a/é", "http://a/\U0001f600", "http://é.org/",
    "http://a#b", "http://a?b?c#d/e?f", "mailto:a@b.c", "http://a/b:c@d", "http://a\\u002Fb",
    "http://a/\\U000000E9", "http://a/'()*!$,;=&~_-.", RDF + "type", XSD + "string",
]  # fmt: skip
_wrong = ["a", "", "http://a b", "http://a#b#c", "http://h:x/", "urn:%", "urn:%4", "urn:%zz", ":a",
          "1a:b", "http://a\\u0020", "http://a|b", "http://a{}", "http://a\\n", "a://b@c@d",
          "http://a\x7fb", "http://a\u0080", "http://a\ufffe", "http://a\x01b",
          "http://a/\ue000"]  # fmt: skip
_any_iri = st.text("ab:/?#[]@!$&'()*+,;=-._~%19é\u2002\\u", max_size=12).map("http:{}".format)
_characters = st.text(
    st.one_of(
        st.sampled_from("ab \té\u0085\u2028\ufeff\U0001f600'#.@^<>_:\x7f\x01"),
        st.characters(codec="utf-8", exclude_characters='"\\\n\r'),
    ),
    max_size=20,
)
_escapes = ["\\t", "\\b", "\\n", "\\r", "\\f", '\\"', "\\'", "\\\\", "\\u0041", "\\u00e9",
            "\\u0001", "\\U0001F600", "\\u0022", "\\u005C", "\\u007F", "\\u000A"]  # fmt: skip
_wrong_escapes = ["\\q", "\\u12", "\\uD800", "\\U00110000", "\\"]
_tags = ["en", "de", "en-us", "EN", "en-GB", "zh-hans-cn", "de-1996", "x-a", "ltr", "en--ltr"]
_wrong_tags = ["", "a1", "abcdefghi", "en-", "e_n", "en--x", "1"]
_datatypes = [XSD + "integer", XSD + "string", "urn:d", "http://a/é", RDF + "HTML"]
_wrong_datatypes = ["d", RDF + "langString", RDF + "dirLangString", "http://a b"]
_labels = ["a", "b1", "1", "a.b", "a-b", "A_", "é", "a·b", "_", "0a7e" * 8, "aaaaaaaaaaaa"]
_wrong_labels = ["", "-a", ".a", "a:b", "é.", "a/b"]


def _iris(wrong: bool) -> st.SearchStrategy[str]:
    fine = st.one_of(st.sampled_from(_common), st.sampled_from(_unusual))
    both = st.one_of(fine, st.sampled_from(_wrong), _any_iri) if wrong else fine
    return both.map("<{}>".format)


def _literals(wrong: bool) -> st.SearchStrategy[str]:
    escapes = st.sampled_from([*_escapes, *(_wrong_escapes if wrong else [])])
    lexical = st.lists(st.one_of(_characters, escapes), max_size=4).map("".join)
    datatypes = [*_datatypes, *(_wrong_datatypes if wrong else [])]
    ends = st.one_of(
        st.just(""),
        st.sampled_from([*_tags, *(_wrong_tags if wrong else [])]).map("@{}".format),
        st.sampled_from(datatypes).map("^^<{}>".format),
    )
    return st.builds('"{}"{}'.format, lexical, ends)


def _blanks(wrong: bool) -> st.SearchStrategy[str]:
    return st.sampled_from([*_labels, *(_wrong_labels if wrong else [])]).map("_:{}".format)


_gaps = st.sampled_from([" ", " ", " ", "\t", "  ", " \t "])
_ends = st.sampled_from(
    ["\n", "\n", "\n", "\r\n", "\n\n", " \n", "\t# a comment . <a>\n", "\n#\n", "\r"]
)


@st.composite
def lines(draw: st.DrawFn, *, quads: bool = False, wrong: bool = False) -> str:
    """One statement with the end of its line; a wrong one may be right by chance."""
    subjects = st.one_of(_iris(wrong), _blanks(wrong))
    terms = [draw(subjects), draw(_iris(wrong)), draw(st.one_of(subjects, _literals(wrong)))]
    if quads and draw(st.booleans()):
        terms.append(draw(subjects))
    if wrong:
        match draw(st.integers(0, 5)):
            case 0:
                terms.pop(draw(st.integers(0, len(terms) - 1)))
            case 1:
                terms = draw(st.permutations(terms))
            case 2:
                terms.append(draw(subjects))
    gaps = [draw(_gaps) for _ in terms]
    before = draw(st.sampled_from(["", "", "", " ", "\t"]))
    # A blank before the full stop, because it may belong to a label.
    stop = draw(st.sampled_from([".", ".", ".", ".", ". .", ""])) if wrong else "."
    text = before + "".join(term + gap for term, gap in zip(terms, gaps, strict=True)) + stop
    return text + draw(_ends)


def documents(*, quads: bool = False, wrong: bool = False) -> st.SearchStrategy[str]:
    """Whole texts; the last line break may be missing."""
    text = st.lists(lines(quads=quads, wrong=wrong), max_size=6).map("".join)
    return st.one_of(text, text.map(str.rstrip))


Statement = tuple[str, str, str]


def expected(text: str | bytes, format_: str) -> list[Statement]:
    """What the library reads; only the labels of blank nodes are those of the text."""
    data = text.encode() if isinstance(text, str) else text
    return [_texts(quad) for quad in pyoxigraph.parse(data, LIBRARY[format_])]


def expected_by_line(text: str | bytes, format_: str) -> tuple[list[Statement], list[int]]:
    """What the library reads line by line, and the numbers of the lines that it refuses."""
    statements, refused = [], []
    data = text.encode() if isinstance(text, str) else text
    for number, line in enumerate(data.split(b"\n"), 1):
        for part in line.split(b"\r"):
            try:
                statements += expected(part, format_)
            except SyntaxError:
                refused.append(number)
    return statements, refused


def _texts(quad: pyoxigraph.Quad) -> Statement:
    return str(quad.subject), str(quad.predicate), str(quad.object)
