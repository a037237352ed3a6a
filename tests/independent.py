"""States of histories compared with systems that share no evaluation code with Corollary's engines.

The reference evaluator is asked where a state is small enough for it. `owlrl` is asked for OWL 2 RL
where both mean the same; left out are triples on which the two differ by design: literals (`owlrl`
has other datatypes, and another equality of values), statements that relate the vocabulary itself
to anything (`owlrl` adds axiomatic triples about it, and evaluates some rules once), and keys
(`owlrl` equates members of which one has no value of the key). Every difference that is left must
be one that `benchmarks.owlrl_peer` explains.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable

from benchmarks.owlrl_peer import closed, explained
from corollary import rules
from corollary.lang.program import Program
from corollary.lang.syntax import RDF, Atom
from tests.configurations import State, Triple, as_text, differs

REFERENCE = 5_000_000  # rules × triples² that the reference evaluator may cost: a few seconds
OWLRL = 600  # explicit triples
_VOCABULARY = "<http://www.w3.org/"
_KEY = "<http://www.w3.org/2002/07/owl#hasKey>"
_TYPE, _FIRST, _REST, _NIL = (f"<{RDF}{name}>" for name in ("type", "first", "rest", "nil"))


def check_independently(state: State) -> dict[str, int]:
    """Raise if an independent system derives something else; counts the systems asked."""
    asked = {"reference": 0, "owlrl": 0}
    if len(state.program.rules) * len(state.triples) ** 2 <= REFERENCE:
        differs(state.triples, state.by_reference(), "plain settings and the reference evaluator")
        asked["reference"] = 1
    if state.program == rules("owl-rl") and importlib.util.find_spec("owlrl") is not None:
        plain = State(state.program, frozenset(filter(_is_plain, state.explicit)))
        broken = any(triple[1] in (_FIRST, _REST) for triple in state.explicit - plain.explicit)
        if len(plain.explicit) <= OWLRL and not broken and _has_whole_lists(plain.explicit):
            _check_owlrl(plain)
            asked["owlrl"] = 1
    return asked


def _has_whole_lists(triples: Iterable[Triple]) -> bool:
    """Whether all lists end with rdf:nil; `owlrl` reads others as far as they go."""
    cells = {subject for subject, property_, _ in triples if property_ == _FIRST}
    rest = [(subject, object_) for subject, property_, object_ in triples if property_ == _REST]
    return cells == {cell for cell, _ in rest} and {end for _, end in rest} <= {*cells, _NIL}


def _is_plain(triple: Triple) -> bool:
    subject, property_, object_ = triple
    if object_.startswith('"') or "XMLSchema#" in object_ or subject.startswith(_VOCABULARY):
        return False
    if property_ == _KEY:
        return False
    return property_ in (_TYPE, _REST) or not object_.startswith(_VOCABULARY)


def _check_owlrl(state: State) -> None:
    from rdflib import Graph

    theirs = closed(Graph().parse(data=as_text(state.explicit), format="nt"))
    ours = _atoms(state.triples)
    axioms = _atoms(State(state.program, frozenset()).triples)
    wrong = [fact for fact in (ours ^ theirs) - axioms if explained(fact, ours) is None]
    assert not wrong, "\n".join(f"{'ours' if fact in ours else 'owlrl'} {fact}" for fact in wrong)


def _atoms(triples: frozenset[Triple]) -> frozenset[Atom]:
    return frozenset(Program.parse("".join(f"[{s}, {p}, {o}] ." for s, p, o in triples)).facts)
