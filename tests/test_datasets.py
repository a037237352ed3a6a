"""Named graphs: random updates, rule changes, reverts and queries, against independent systems."""

from __future__ import annotations

import io
import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyoxigraph as ox
import pytest

from corollary import KnowledgeBase, Program
from corollary.errors import InvalidInput
from corollary.knowledge_base.export import export
from corollary.knowledge_base.graphs import graph_named
from corollary.knowledge_base.patches import apply_patch
from corollary.knowledge_base.purging import purge
from corollary.lang.printer import Printer
from corollary.lang.reference import materialize
from corollary.lang.syntax import Rule

TERMS = [f"<urn:{name}>" for name in "abcd"]
PROPERTIES = ["<urn:p>", "<urn:q>"]
GRAPHS = ["<urn:g>", "<urn:h>", "<urn:i>"]
RULES = [
    "[?y, <urn:r>, ?x] :- [?x, <urn:p>, ?y] .",
    "[?x, <urn:p>, ?z] :- [?x, <urn:p>, ?y], [?y, <urn:q>, ?z] .",
    "[?s, <urn:from>, ?g] :- [?s, <urn:p>, ?o] ?g .",
    "[?s, <urn:q>, ?o] <urn:trusted> :- [?s, <urn:q>, ?o] <urn:g> .",
    "[?s, ?p, ?o] <urn:both> :- [?s, ?p, ?o] <urn:g>, [?s, ?p, ?o] <urn:h> .",
]


def _triple(draw: random.Random) -> str:
    return f"{draw.choice(TERMS)} {draw.choice(PROPERTIES)} {draw.choice(TERMS)}"


def _data(draw: random.Random) -> str:
    parts = []
    for _ in range(draw.randint(1, 4)):
        graph = draw.choice([None, *GRAPHS])
        triples = " . ".join(_triple(draw) for _ in range(draw.randint(1, 3)))
        parts.append(triples if graph is None else f"GRAPH {graph} {{ {triples} }}")
    return (
        " . ".join(parts)
        if all("GRAPH" not in part for part in parts)
        else " ".join(part if part.startswith("GRAPH") else f"{part} ." for part in parts)
    )


def _pattern(draw: random.Random) -> str:
    pattern = f"?s {draw.choice([*PROPERTIES, '?p'])} {draw.choice(['?o', *TERMS])}"
    graph = draw.choice([None, "?g", *GRAPHS])
    return pattern if graph is None else f"GRAPH {graph} {{ {pattern} }}"


def operation(draw: random.Random) -> str:
    """A random operation, with which pyoxigraph and Corollary agree on what is an error."""

    def graph() -> str:
        return draw.choice(["DEFAULT", *(f"GRAPH {name}" for name in GRAPHS)])

    match draw.randint(0, 8):
        case 0 | 1 | 2:
            return f"INSERT DATA {{ {_data(draw)} }}"
        case 3:
            return f"DELETE DATA {{ {_data(draw)} }}"
        case 4:
            return f"{draw.choice(['CLEAR', 'DROP'])} SILENT {draw.choice([graph(), 'NAMED'])}"
        case 5:
            verb = draw.choice(["ADD", "COPY", "MOVE"])
            return f"{verb} SILENT {graph()} TO {graph()}".replace("GRAPH ", "")
        case 6:
            return f"DELETE WHERE {{ {_pattern(draw)} }}"
        case 7:
            with_ = draw.choice(["", f"WITH {draw.choice(GRAPHS)} "])
            target = draw.choice(
                ["?s <urn:q> ?s", f"GRAPH {draw.choice(GRAPHS)} {{ ?s <urn:q> ?s }}"]
            )
            return f"{with_}INSERT {{ {target} }} WHERE {{ ?s <urn:p> ?o }}"
        case _:
            using = draw.choice(["", f"USING {draw.choice(GRAPHS)} "])
            inserted = "GRAPH <urn:i> { ?o ?p ?s }"
            pattern = "{ ?s ?p ?o }"
            return f"DELETE {pattern} INSERT {{ {inserted} }} {using}WHERE {pattern}"


def quads_of(kb: KnowledgeBase, which: str = "explicit") -> set[str]:
    """The statements of a knowledge base, each with its graph."""
    text = kb.serialize("nq", which)  # type: ignore[arg-type]
    assert isinstance(text, str)
    return {line.removesuffix(" .") for line in text.splitlines()}


def _quads_of_store(store: ox.Store) -> set[str]:
    return {str(quad).removesuffix(" .") for quad in store}


def _updates(draw: random.Random, number: int) -> Iterator[str]:
    for _ in range(number):
        yield " ; ".join(operation(draw) for _ in range(draw.randint(1, 3)))


def _sees_nothing_new(store: ox.Store, request: str) -> None:
    """COPY and MOVE of a graph without statements fail here; there they may clear their target."""
    for one in request.split(" ; "):
        words = one.split()
        if words[0] in ("COPY", "MOVE", "ADD") and words[2] != "DEFAULT":
            source = ox.NamedNode(words[2][1:-1])
            if not any(store.quads_for_pattern(None, None, None, source)):
                continue
        store.update(one)


def _seeds(fast: int, every: int) -> list[object]:
    """Seeds, of which all but the first few are for the long tests."""
    return [pytest.param(n, marks=[pytest.mark.long] if n >= fast else []) for n in range(every)]


@pytest.mark.parametrize("seed", _seeds(1, 8))
def test_random_updates_agree_with_pyoxigraph(seed: int) -> None:
    draw = random.Random(seed)
    kb, store = KnowledgeBase(), ox.Store()
    for request in _updates(draw, 12):
        kb.update(request, default_graph="default")
        _sees_nothing_new(store, request)
        assert quads_of(kb) == _quads_of_store(store), request


QUERIES = (
    "SELECT * { GRAPH ?g { ?s <urn:p> ?o } }",
    "SELECT * { GRAPH ?g { ?s <urn:p> ?o OPTIONAL { ?o <urn:q> ?x } } }",
    "SELECT * { ?s <urn:p> ?o OPTIONAL { GRAPH ?g { ?o ?p ?x } } }",
    "SELECT * { GRAPH ?g { ?s ?p ?o MINUS { ?s <urn:q> ?x } } }",
    "SELECT * { GRAPH ?g { ?s <urn:p>/<urn:q>* ?o } }",
    "SELECT * { GRAPH ?g { ?s (<urn:p>|^<urn:q>)+ ?o } }",
    "SELECT * { GRAPH ?g { ?s ?p ?o FILTER NOT EXISTS { ?o ?p ?s } } }",
    "SELECT * { GRAPH ?g { ?s ?p ?o } FILTER EXISTS { GRAPH <urn:h> { ?s ?p ?o } } }",
    "SELECT * { GRAPH ?g { ?s <urn:p> ?o } GRAPH ?h { ?s <urn:p> ?o } FILTER(?g != ?h) }",
    "SELECT ?g (COUNT(*) AS ?n) { GRAPH ?g { ?s ?p ?o } } GROUP BY ?g",
    "SELECT * { GRAPH ?g { { ?s <urn:p> ?o } UNION { ?o <urn:q> ?s } } }",
    "SELECT * { GRAPH ?g { ?s <urn:p> ?o BIND(?g AS ?h) } }",
    "SELECT * { GRAPH ?g { ?g ?p ?o } }",
    "SELECT * { GRAPH ?g { } }",
    "SELECT * { GRAPH <urn:g> { ?s ?p ?o } ?o ?q ?x }",
    "SELECT * FROM <urn:g> FROM <urn:h> { ?s ?p ?o }",
    "SELECT * FROM <urn:g> FROM NAMED <urn:h> { ?s ?p ?o GRAPH ?g { ?s ?q ?x } }",
    "SELECT * FROM NAMED <urn:h> FROM NAMED <urn:i> { GRAPH ?g { ?s <urn:p>* ?o } }",
    "SELECT * { VALUES ?g { <urn:g> <urn:nowhere> } GRAPH ?g { ?s ?p ?o } }",
    "CONSTRUCT { ?s <urn:in> ?g } WHERE { GRAPH ?g { ?s ?p ?o } }",
    "ASK { GRAPH <urn:nowhere> { } }",
)


def _answers(result: object) -> list[str]:
    if isinstance(result, ox.QueryBoolean):
        return [str(bool(result))]
    if isinstance(result, ox.QueryTriples):
        return sorted(map(str, result))
    assert isinstance(result, ox.QuerySolutions)
    names = sorted(variable.value for variable in result.variables)
    return sorted(str([(n, str(row[n])) for n in names if row[n] is not None]) for row in result)


def _own_answers(kb: KnowledgeBase, text: str, default_graph: str) -> list[str]:
    answer = kb.query(text, default_graph=default_graph)
    if isinstance(answer, bool):
        return [str(answer)]
    rows = answer.to_pylist()
    if text.startswith("CONSTRUCT"):
        return sorted(" ".join(row.values()) for row in rows)
    return sorted(str([(n, v) for n, v in sorted(row.items()) if v is not None]) for row in rows)


def test_some_queries_agree_with_pyoxigraph() -> None:
    _compare(0, "materialized", QUERIES[::6])


@pytest.mark.long
@pytest.mark.parametrize("mode", ["materialized", "hybrid"])
@pytest.mark.parametrize("seed", range(4))
def test_queries_agree_with_pyoxigraph(seed: int, mode: str) -> None:
    _compare(seed, mode, QUERIES)


def _compare(seed: int, mode: str, queries: Sequence[str]) -> None:
    draw = random.Random(seed)
    kb, store = KnowledgeBase(mode=mode), ox.Store()
    for _ in range(5):
        request = f"INSERT DATA {{ {_data(draw)} }}"
        kb.update(request)
        store.update(request)
    for text in queries:
        for default_graph in ("default", "union"):
            merges = default_graph == "union" or "FROM <urn:g> FROM <urn:h>" in text
            if default_graph == "union" and "FROM" in text:
                continue  # pyoxigraph then ignores FROM
            theirs = _answers(
                store.query(text, use_default_graph_as_union=default_graph == "union")
            )
            own = _own_answers(kb, text, default_graph)
            # A merge of graphs has a triple once; pyoxigraph counts it for each graph.
            assert set(own) == set(theirs), text
            assert merges or own == theirs, text


def test_a_subquery_is_evaluated_in_each_graph() -> None:
    kb = KnowledgeBase()
    kb.insert("<urn:g> { <urn:a> <urn:p> 1, 2 } <urn:h> { <urn:a> <urn:p> 3 }")
    answer = kb.query("SELECT * { GRAPH ?g { SELECT (COUNT(*) AS ?n) { ?s ?p ?o } } }")
    counts = {row["g"]: row["n"][1] for row in answer.to_pylist()}  # type: ignore[union-attr]
    assert counts == {"<urn:g>": "2", "<urn:h>": "1"}


# -- streams with rules ----------------------------------------------------------------------------


def _derived_by_hand(kb: KnowledgeBase) -> set[str]:
    """The union of the graphs of a statement, computed by the reference evaluator."""
    quads = [line.split() for line in quads_of(kb)]
    printer = Printer(well_known=False)
    facts = ["[{}, {}, {}] .".format(*quad[:3]) for quad in quads]
    facts += ["[{}, {}, {}] {} .".format(*quad) for quad in quads if len(quad) == 4]
    text = "\n".join([*map(printer.rule, kb.program.rules), *facts])
    return {printer.atom(fact) for fact in materialize(Program.parse(text))}


def _own_facts(kb: KnowledgeBase) -> set[str]:
    printer = Printer(well_known=False)
    tables = (kb.facts("[?s, ?p, ?o]"), kb.facts("quads"))
    return {
        printer.atom(Program.parse(f"{_written(list(row.values())[:-1])} .").facts[0])
        for table in tables
        for row in table.to_pylist()
    }


def _written(terms: list[str]) -> str:
    return f"[{', '.join(terms[:3])}]{''.join(f' {term}' for term in terms[3:])}"


@pytest.mark.parametrize("seed", _seeds(1, 6))
@pytest.mark.parametrize("stored", [False, True])
def test_streams_agree_with_the_reference_evaluator(
    seed: int, stored: bool, tmp_path: Path
) -> None:
    draw = random.Random(seed)
    kb = KnowledgeBase(RULES[seed % len(RULES)])
    if stored:
        kb.save(tmp_path / "store")
    states = {kb.version: (quads_of(kb), frozenset(kb.program.rules))}
    for _ in range(6 if stored else 10):
        _step(draw, kb, states, stored)
        assert _own_facts(kb) == _derived_by_hand(kb)
        states[kb.version] = (quads_of(kb), frozenset(kb.program.rules))
        if stored and draw.random() < 0.4:
            kb = KnowledgeBase.open(tmp_path / "store")
            assert states[kb.version] == (quads_of(kb), frozenset(kb.program.rules))


def _step(
    draw: random.Random,
    kb: KnowledgeBase,
    states: dict[int, tuple[set[str], frozenset[Rule]]],
    stored: bool,
) -> None:
    kind = draw.randint(0, 6)
    if kind == 0:
        rule = draw.choice(RULES)
        is_known = Program.parse(rule).rules[0] in kb.program
        with kb.transaction() as tx:
            tx.remove_rules(rule) if is_known else tx.add_rules(rule)
    elif kind == 1 and stored:
        version = draw.choice([number for number in states if number])
        kb.revert(to=version)
        assert (quads_of(kb), frozenset(kb.program.rules)) == states[version]
    elif kind == 2:
        before, terms = quads_of(kb, "all"), len(kb.state.dictionary)
        with kb.transaction() as tx:
            tx.update(operation(draw) + " ; INSERT DATA { GRAPH <urn:new> { <urn:n> <urn:n> 1 } }")
            preview = str(tx.preview())
            tx.rollback()
        assert "<urn:new>" in preview
        assert quads_of(kb, "all") == before
        assert len(kb.state.dictionary) == terms
    else:
        kb.update(" ; ".join(operation(draw) for _ in range(draw.randint(1, 3))))


# -- examples --------------------------------------------------------------------------------------


def test_a_triple_is_explicit_for_as_long_as_a_graph_has_it() -> None:
    kb = KnowledgeBase("[?y, <urn:q>, ?x] :- [?x, <urn:p>, ?y] .")
    kb.insert("<urn:a> <urn:p> <urn:b> . <urn:g> { <urn:a> <urn:p> <urn:b> }")
    assert len(kb.delete("<urn:a> <urn:p> <urn:b> .")) == 0
    assert kb.match(which="explicit").to_pylist()[0]["predicate"] == "<urn:p>"
    changes = kb.delete("<urn:a> <urn:p> <urn:b> .", graph="urn:g")
    assert len(changes) == 3
    assert kb.count() == 0


@pytest.mark.parametrize(
    ("over", "derived"), [("union", 3), ("default", 1), (["urn:g"], 1), (["urn:g", "default"], 2)]
)
def test_rules_read_the_chosen_graphs(over: object, derived: int) -> None:
    kb = KnowledgeBase("[?y, <urn:q>, ?x] :- [?x, <urn:p>, ?y] .", reason_over=over)  # type: ignore[arg-type]
    kb.insert("<urn:a> <urn:p> 1 . <urn:g> { <urn:a> <urn:p> 2 } <urn:h> { <urn:a> <urn:p> 3 }")
    assert len(kb.match(which="derived")) == derived
    answer = kb.query("SELECT * { ?s <urn:p> ?o }")
    assert len(answer) == 3  # type: ignore[arg-type]
    with kb.transaction() as tx:
        tx.reason_over("union")
    assert len(kb.match(which="derived")) == 3
    with kb.transaction() as tx:
        tx.reason_over(over)  # type: ignore[arg-type]
    assert len(kb.match(which="derived")) == derived


def test_the_pseudo_graphs_tell_explicit_triples_from_derived_ones() -> None:
    kb = KnowledgeBase("[?y, <urn:q>, ?x] :- [?x, <urn:p>, ?y] .")
    kb.insert("<urn:g> { <urn:a> <urn:p> <urn:b> }")
    for graph, found in (("explicit", "<urn:p>"), ("derived", "<urn:q>")):
        answer = kb.query(f"SELECT ?p {{ GRAPH <urn:x-corollary:{graph}> {{ ?s ?p ?o }} }}")
        assert answer.to_pylist() == [{"p": found}]  # type: ignore[union-attr]
    with pytest.raises(InvalidInput) as caught:
        kb.update("INSERT DATA { GRAPH <urn:x-corollary:derived> { <urn:a> <urn:p> 1 } }")
    assert caught.value.code == "E349"


READERS: dict[str, Callable[[Path], object]] = {
    "data.nq": lambda path: path.write_text("<urn:a> <urn:p> <urn:b> <urn:g> .\n"),
    "data.trig": lambda path: path.write_text("<urn:g> { <urn:a> <urn:p> <urn:b> }"),
    "data.jsonld": lambda path: path.write_text(
        '{"@id": "urn:g", "@graph": [{"@id": "urn:a", "urn:p": {"@id": "urn:b"}}]}'
    ),
}


@pytest.mark.parametrize("name", READERS)
def test_files_keep_their_graphs(name: str, tmp_path: Path) -> None:
    READERS[name](tmp_path / name)
    kb = KnowledgeBase()
    kb.load(tmp_path / name)
    assert quads_of(kb) == {"<urn:a> <urn:p> <urn:b> <urn:g>"}
    for format_ in ("nq", "trig", "jsonld"):
        (tmp_path / f"again.{format_}").write_text(str(kb.serialize(format_)))
        again = KnowledgeBase()
        again.load(tmp_path / f"again.{format_}")
        assert quads_of(again) == quads_of(kb)


def test_a_graph_option_places_files_and_frames(tmp_path: Path) -> None:
    import rdflib

    (tmp_path / "data.ttl").write_text("<urn:a> <urn:p> <urn:b> .")
    kb = KnowledgeBase()
    kb.load(tmp_path / "data.ttl", graph="<urn:g>")
    rows = {"subject": ["urn:a", "urn:a"], "predicate": ["urn:p"] * 2, "object": ["urn:c", "urn:d"]}
    kb.insert(pa.table(rows | {"graph": ["urn:h", None]}))
    dataset = rdflib.Dataset()
    dataset.graph("urn:i").add((rdflib.URIRef("urn:a"), rdflib.URIRef("urn:p"), rdflib.Literal(1)))
    kb.insert(dataset)
    store = ox.Store()
    store.add(ox.Quad(*map(ox.NamedNode, ("urn:a", "urn:p", "urn:e", "urn:j"))))
    kb.insert(store)
    assert {line.split()[-1] for line in quads_of(kb) if line.count(" ") == 3} == {
        *("<urn:g>", "<urn:h>", "<urn:i>", "<urn:j>")
    }
    assert "<urn:a> <urn:p> <urn:d>" in quads_of(kb)
    assert _quads_of_store(kb.to_pyoxigraph()) == quads_of(kb)
    back = KnowledgeBase()
    back.insert(kb.to_dataset())
    assert quads_of(back) == quads_of(kb)


def test_a_purge_erases_a_triple_from_all_graphs_and_a_graph_with_its_triples(
    tmp_path: Path,
) -> None:
    kb = KnowledgeBase("[?y, <urn:q>, ?x] :- [?x, <urn:p>, ?y] .")
    kb.insert("<urn:a> <urn:p> 1 . <urn:g> { <urn:a> <urn:p> 1, 2 } <urn:h> { <urn:a> <urn:p> 3 }")
    kb.save(tmp_path / "store")
    kb.update("DROP GRAPH <urn:h>")
    (tmp_path / "one.ttl").write_text("<urn:a> <urn:p> 1 .")
    purge(tmp_path / "store", statements=[tmp_path / "one.ttl"])
    integer = "^^<http://www.w3.org/2001/XMLSchema#integer>"
    kb = KnowledgeBase.open(tmp_path / "store", at_version=1)
    assert quads_of(kb) == {
        f'<urn:a> <urn:p> "2"{integer} <urn:g>',
        f'<urn:a> <urn:p> "3"{integer} <urn:h>',
    }
    purge(tmp_path / "store", about=["<urn:h>"])
    kb = KnowledgeBase.open(tmp_path / "store", at_version=1)
    assert quads_of(kb) == {f'<urn:a> <urn:p> "2"{integer} <urn:g>'}
    assert kb.count("[?x, <urn:q>, ?y]") == 1


def test_patches_change_named_graphs(tmp_path: Path) -> None:
    path = tmp_path / "changes.rdfp"
    path.write_text(
        "PA ex <urn:> .\nTX .\nA ex:a ex:p ex:b ex:g .\nA ex:a ex:p 1 .\nTC .\n"
        "TX .\nD <urn:a> <urn:p> <urn:b> <urn:g> .\nTC .\n"
    )
    kb = KnowledgeBase()
    first, second = apply_patch(kb, path)
    assert str(first).splitlines()[-1] == "+ [<urn:a>, <urn:p>, <urn:b>] <urn:g>"
    assert len(second) == 2
    assert len(quads_of(kb)) == 1


def test_proofs_name_the_graphs_of_explicit_triples() -> None:
    kb = KnowledgeBase("[apart] false :- [?x, a, <urn:C>], [?x, a, <urn:D>] .")
    kb.insert("<urn:g> { <urn:x> a <urn:C> } <urn:x> a <urn:C> .")
    assert "explicit in <urn:x-corollary:default>, <urn:g>" in str(kb.explain("<urn:x> a <urn:C>"))
    with kb.transaction() as tx:
        tx.insert("<urn:x> a <urn:D> .", graph="urn:h")
        [found] = tx.preview().contradictions
    assert "explicit in <urn:h>" in str(found)
    assert "explicit in <urn:h>" in str(kb.inconsistencies()[0])
    assert "explicit in <urn:h>" in str(kb.check())


@pytest.mark.parametrize("over", ["union", "default", ["<urn:g>"]])
@pytest.mark.parametrize("form", ["nq", "trig", "json-ld"])
def test_the_default_graph_alone_is_exported(over: Any, form: str) -> None:
    """Whether or not rules read it, and whether or not there is a named graph."""
    kb = KnowledgeBase(reason_over=over)
    kb.insert("<urn:a> <urn:p> <urn:b> .")
    text = str(kb.serialize(form, "explicit"))
    assert "urn:a" in text


@pytest.mark.parametrize("which", ["all", "explicit", "derived"])
@pytest.mark.parametrize("form", ["nq", "trig", "json-ld"])
def test_an_export_is_that_of_each_graph_together(form: str, which: Any) -> None:
    kb = KnowledgeBase("[?y, <urn:q>, ?x] :- [?x, <urn:p>, ?y] .")
    kb.insert("<urn:a> <urn:p> <urn:b> . <urn:g> { <urn:a> <urn:p> <urn:b>, <urn:c> }")

    def statements(graph: str | None) -> set[str]:
        file = io.BytesIO()
        name = None if graph is None else graph_named(graph, {})
        export(kb.state, file, "jsonld" if form == "json-ld" else form, which, graph=name)
        format_ = {"nq": "N_QUADS", "trig": "TRIG", "json-ld": "JSON_LD"}[form]
        return set(map(str, ox.parse(file.getvalue(), format=getattr(ox.RdfFormat, format_))))

    parts = statements("default"), statements("urn:g")
    assert parts[0] | parts[1] == statements(None)
    sizes = {"all": (3, 2), "explicit": (1, 2), "derived": (2, 0)}
    assert (len(parts[0]), len(parts[1])) == sizes[which]


@pytest.mark.parametrize("name", ["explicit", "derived", "union"])
@pytest.mark.parametrize("verb", ["CLEAR", "DROP", "CLEAR SILENT"])
def test_pseudo_graphs_cannot_be_cleared(verb: str, name: str) -> None:
    kb = KnowledgeBase()
    kb.insert("<urn:a> <urn:p> <urn:b> .")
    request = f"{verb} GRAPH <urn:x-corollary:{name}>"
    if "SILENT" in verb:
        kb.update(request)
    else:
        with pytest.raises(InvalidInput, match="E349"):
            kb.update(request)
    assert len(quads_of(kb)) == 1
    kb.update("CLEAR GRAPH <urn:x-corollary:default>")
    assert not quads_of(kb)


def test_differences_say_which_graphs_rules_read(tmp_path: Path) -> None:
    kb = KnowledgeBase()
    kb.insert("<urn:a> <urn:p> <urn:b> .")
    kb.save(tmp_path / "store")
    with kb.transaction() as tx:
        tx.reason_over("<urn:g>")
    assert "+ rules read <urn:g>" in list(kb.diff(1).lines())


def test_graphs_named_by_literals_are_no_rdf() -> None:
    kb = KnowledgeBase("[?s, <urn:p>, ?o] ?o :- [?s, <urn:q>, ?o] .")
    kb.insert("<urn:a> <urn:q> 1, <urn:g> .")
    assert kb.count("[?s, ?p, ?o] ?g") == 2
    assert len(quads_of(kb, "all")) == len(kb.to_pyoxigraph()) == len(kb.to_dataset()) == 3


def test_quads_are_found_in_every_form() -> None:
    kb = KnowledgeBase()
    kb.insert("<urn:g> { <urn:a> <urn:p> 1 } <urn:a> <urn:p> 2 .")
    one = ("<urn:a>", "<urn:p>", 1)
    iri = ox.NamedNode
    quad = ox.Quad(iri("urn:a"), iri("urn:p"), ox.Literal(1), iri("urn:g"))
    for found in ((*one, "urn:g"), (*one, None), (*one, "?g"), (*one, iri("urn:g")), quad):
        assert found in kb
        assert kb.count(found) == 1
    default = ox.Quad(iri("urn:a"), iri("urn:p"), ox.Literal(2))
    assert default in kb
    assert (*one, "urn:h") not in kb
    assert ("<urn:a>", "<urn:p>", 2, None) in kb  # as rdflib writes a triple of the default graph
    assert ("<urn:a>", "<urn:p>", 2, "?g") not in kb
    assert str(kb.explain((*one, "urn:g"))) == "[<urn:a>, <urn:p>, 1] <urn:g>   explicit"
    for wrong, code in (((*one, 3), "E349"), ((*one, "urn:g", 1), "E345")):
        with pytest.raises(InvalidInput, match=code):
            kb.count(wrong)
