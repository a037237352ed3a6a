"""Write the notebook of the tour, and execute it: `python -m tools.tour`.

The cells are here, so that a change of them is readable; the outputs are what the cells gave.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import nbclient
import nbformat

NOTEBOOK = Path(__file__).parents[1] / "docs" / "tour.ipynb"

# Text, or the code of a cell, which begins with a line `#code`.
CELLS = [
    """# A tour of Corollary

Corollary derives all consequences of facts and rules, keeps them up to date, explains them and
answers queries. In a notebook, everything shows as tables and pictures, with short names. They need
neither JavaScript nor a network.""",
    '''#code
import corollary as co

kb = co.KnowledgeBase("owl-rl")
changes = kb.insert("""
    @prefix : <http://example.org/> .
    :Chair rdfs:subClassOf :Employee . :Employee rdfs:subClassOf :Person .
    :headOf rdfs:subPropertyOf :worksFor .
    :worksFor rdfs:domain :Employee ; rdfs:range :Department .
    :partOf a owl:TransitiveProperty .
    :ann a :Chair ; :headOf :physics . :bob :worksFor :physics . :eve :worksFor :optics .
    :optics :partOf :physics . :physics :partOf :university .
    :ann :age 52 . :bob :age 31 .
""")
kb''',
    """The changes are explicit facts and what follows from them. Facts such as `owl:sameAs` of a
term and itself exist, but are not shown.""",
    "#code\nchanges",
    "## Questions",
    '''#code
kb.query("""
    SELECT ?person ?department ?age
    WHERE { ?person a :Employee ; :worksFor ?department OPTIONAL { ?person :age ?age } }
    ORDER BY ?person ?department
""")''',
    "Answers convert to Arrow, pandas, Polars and rdflib. With `native=True`, numbers are numbers:",
    """#code
kb.query("SELECT ?person ?age { ?person :age ?age } ORDER BY ?age").to_pandas(native=True)""",
    "`match` takes patterns, and every form of a triple: texts, tuples, rdflib terms.",
    '#code\n(":eve", "a", ":Person") in kb, len(kb.match(None, ":partOf", None))',
    "## Proofs",
    '#code\nkb.explain(":ann a :Person")',
    "What does not hold has no proof, but `why_not` shows what is missing, nearest first.",
    '#code\nkb.why_not(":university a :Department", limit=2)',
    "## The schema",
    "#code\nkb.schema()",
    """## Changes

Axioms are facts. Deleting one deletes what follows from it alone:""",
    '#code\nkb.delete(":partOf a owl:TransitiveProperty")',
    "Rules can change, too:",
    '''#code
with kb.transaction() as tx:
    tx.add_rules("""
        @prefix : <http://example.org/> .
        [within] [?x, :worksFor, ?z] :- [?x, :worksFor, ?y], [?y, :partOf, ?z] .
    """)
kb.explain(":eve :worksFor :university")''',
    "## Contradictions, and axioms without effect",
    '''#code
kb.insert(""":Employee owl:disjointWith :Department . :eve a :Department .
    :Intern rdfs:subClassOf :Employee, :Department .
    :Chair rdfs:subClassOf [ owl:onProperty :has ; owl:someValuesFrom :Office ] .""")
kb.check(limit=1)''',
    """## A store

A store holds versions on disk, as Delta tables. Every transaction is a commit.""",
    """#code
import tempfile
from pathlib import Path

folder = Path(tempfile.mkdtemp()) / "department.store"
kb.save(folder)
kb = co.KnowledgeBase.open(folder)
with kb.transaction(message="Eve is no department") as tx:
    tx.delete(":eve a :Department")
kb.diff(1)""",
    """#code
with co.KnowledgeBase.open(folder, at_version=1) as old:
    print(len(old.inconsistencies()), len(kb.inconsistencies()))""",
    """## rdflib

Graphs can be loaded and made. An rdflib graph over the store of Corollary reasons by itself.""",
    '''#code
import rdflib

from corollary.knowledge_base.rdflib_store import CorollaryStore

graph = rdflib.Graph(store=CorollaryStore("rhodf"))
graph.parse(
    format="turtle",
    data="""
    @prefix : <http://example.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
    :Cat rdfs:subClassOf :Pet . :tom a :Cat .""",
)
ex = rdflib.Namespace("http://example.org/")
(ex.tom, rdflib.RDF.type, ex.Pet) in graph, len(kb.to_rdflib()) > len(graph)''',
    """## Hybrid

Only the schema is materialized; all other facts are derived on demand, by a plan.""",
    '''#code
hybrid = co.KnowledgeBase("rhodf", mode="hybrid")
hybrid.insert("""
    @prefix : <http://example.org/> .
    :headOf rdfs:subPropertyOf :worksFor . :worksFor rdfs:domain :Employee .
    :ann :headOf :physics .
""")
hybrid.explain_plan("[?x, a, :Employee]")''',
    """## Datalog

Besides triples: relations of any arity, negation, aggregates, filters.""",
    '''#code
roads = co.KnowledgeBase("""
    path(?x, ?y) :- edge(?x, ?y) .
    path(?x, ?z) :- path(?x, ?y), edge(?y, ?z) .
    reach(?x, ?n) :- AGGREGATE(path(?x, ?y) ON ?x BIND count(?y) AS ?n) .
    edge(1, 2) . edge(2, 3) . edge(3, 4) .
""")
roads.delete("edge(2, 3)")''',
    """Next: [getting started](getting-started.md) on the command line, the
[ontology tutorial](tutorials/ontology.md), [rdflib](tutorials/rdflib.md), [Spark](spark.md),
[SPARQL](sparql.md), [stores](store.md).""",
]


def notebook() -> Any:
    """Make the notebook without outputs."""
    cells = []
    for number, text in enumerate(CELLS):
        if text.startswith("#code\n"):
            cell = nbformat.v4.new_code_cell(text.removeprefix("#code\n"))  # type: ignore[no-untyped-call]
        else:
            cell = nbformat.v4.new_markdown_cell(text)  # type: ignore[no-untyped-call]
        cell.id = f"cell-{number}"
        cells.append(cell)
    metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    return nbformat.v4.new_notebook(cells=cells, metadata=metadata)  # type: ignore[no-untyped-call]


def main() -> None:
    """Execute the cells and write the notebook."""
    os.environ["COROLLARY_PROGRESS"] = "0"  # it would depend on the machine
    made = notebook()
    nbclient.NotebookClient(made, timeout=300, kernel_name="python3", record_timing=False).execute()
    for cell in made.cells:
        cell.metadata = {}
    made.metadata["language_info"] = {"name": "python"}
    nbformat.write(made, NOTEBOOK)  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    main()
