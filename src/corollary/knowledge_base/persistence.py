"""Knowledge bases and stores: open one, make one, commit a transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from corollary.algorithms.constraints import Inconsistency
from corollary.algorithms.maintain import Maintainer
from corollary.core.changes import Changes
from corollary.core.proof import Proof
from corollary.core.statistics import Statistics
from corollary.errors import InvalidInput, OperationFailed
from corollary.knowledge_base.axioms import Axioms, axiom_texts, axioms_of
from corollary.knowledge_base.engines import make_engine
from corollary.knowledge_base.hybrid import make_hybrid
from corollary.knowledge_base.results import results_of
from corollary.lang.printer import Printer
from corollary.lang.program import Program
from corollary.lang.syntax import TRIPLES_NAME, Atom

if TYPE_CHECKING:
    from corollary.knowledge_base.base import KnowledgeBase
    from corollary.knowledge_base.differences import Differences
    from corollary.store import Store
    from corollary.store.commits import Commit

# An update holds the facts and an index of each, about twice; texts are compressed in files.
KEY, COPIES, EXPANDED = 8, 4, 4


class Resumed:
    """The materialization of a version; what keeps it up to date is made when first needed."""

    def __init__(
        self, program: Program, explicit: Any, facts: Any, make: Callable[[Any, Any], Any]
    ) -> None:
        """`make` gives a maintainer for explicit facts and all facts."""
        self._program, self._explicit, self._facts = program, explicit, facts
        self._make = make

    @cached_property
    def _kept(self) -> Any:
        return self._make(self._explicit, self._facts)

    @property
    def kept(self) -> Any:
        """What keeps it up to date, and answers queries in hybrid mode. Not to be updated."""
        return self._kept

    @property
    def _begun(self) -> bool:
        return "_kept" in self.__dict__

    @property
    def program(self) -> Program:
        """Π."""
        found: Program = self._kept.program if self._begun else self._program
        return found

    @property
    def specialized(self) -> Program:
        """The rules that do the work."""
        kept = self._kept
        found: Program = getattr(kept, "specialized", kept.program)
        return found

    @property
    def explicit(self) -> Any:
        """E."""
        return self._kept.explicit if self._begun else self._explicit

    @property
    def facts(self) -> Any:
        """The materialization, explicit facts included."""
        return self._facts

    def update(self, changes: Changes[Any]) -> Changes[Any]:
        """Apply changes of explicit facts and rules; the answer is what the facts differ by."""
        done: Changes[Any] = self._kept.update(changes)
        self._facts = self._facts.difference(done.deleted).union(done.inserted)
        return done

    def inconsistencies(self, *, examples: int | None = 3) -> Iterator[Inconsistency]:
        """The constraints that the facts contradict."""
        found: Iterator[Inconsistency] = self._kept.inconsistencies(examples=examples)
        return found

    def explain(self, fact: Atom, **options: Any) -> Proof:
        """A smallest proof of a fact."""
        found: Proof = self._kept.explain(fact, **options)
        return found

    def verify(self) -> None:
        """Derive everything again; raises `OperationFailed` where it differs."""
        self._kept.verify()


def open_knowledge_base(
    cls: type[KnowledgeBase],
    path: str | Path,
    *,
    make: Callable[..., Any],
    at_version: int | None,
    options: Mapping[str, Any],
    threads: int,
    limit_memory: int | None,
    write_cache: bool = True,
) -> KnowledgeBase:
    """See `KnowledgeBase.open`; `make` says for a program and a kind of equality what keeps it."""
    from corollary.knowledge_base.stored import Persistence, facts_of
    from corollary.store import Store
    from corollary.store.opening import open_columns

    store = Store.open(path)
    newest = store.latest()
    snapshot = store.snapshot(newest if at_version is None else at_version)
    opened = open_columns(snapshot, keep=write_cache and snapshot.version == newest)
    kb = cls.__new__(cls)
    kb._dictionary = opened.dictionary
    kb._persistence = Persistence.of(snapshot, kb._dictionary, writable=snapshot.version == newest)
    kb._engine = engine = make_engine(
        "columnar", kb._dictionary, threads=threads, limit_memory=limit_memory
    )
    facts, explicit = facts_of(opened, engine)
    program, kb._options = snapshot.program.without_facts(), dict(options)
    kb._axioms = axioms_of(snapshot, kb._encoded, kb._dictionary)
    kb._equality = snapshot.commit.equality
    kb._mode = snapshot.mode

    def begun(explicit: Any, facts: Any) -> Any:
        if kb._mode == "hybrid":  # what is kept is small, and made again
            patterns = kb._patterns
            return make_hybrid(program, explicit, engine, materialize=patterns, **options)
        kept = make(program, kb._equality)(program, explicit, engine, known=facts, **options)
        if isinstance(kept, Maintainer):
            kept.begin()
        return kept

    kb._maintainer = Resumed(program, explicit, results_of(facts), begun)
    kb._prefixes = dict(program.prefixes)
    widths = {name: count.width for name, count in snapshot.statistics.relations.items()}
    kb._arities = {**{n: w for n, w in widths.items() if n != TRIPLES_NAME}, **program.arities}
    kb._patterns = tuple(map(kb._pattern, snapshot.commit.materialize))
    kb._version = snapshot.version
    kb._transaction = kb._last = None
    return kb


def save_knowledge_base(kb: KnowledgeBase, path: str | Path, *, message: str) -> int:
    """See `KnowledgeBase.save`."""
    from corollary.engines.columnar.facts import ColumnarFacts
    from corollary.knowledge_base.stored import save

    kept = kb._maintainer
    facts, explicit = kept.facts, kept.explicit
    if not isinstance(facts, ColumnarFacts):
        raise InvalidInput(
            "E507",
            "a knowledge base on Spark cannot be saved as it is",
            "corollary.spark.build makes a store with Spark",
        )
    store = empty_store(path, max(kb._arities.values(), default=0))
    kb._persistence = save(
        store,
        facts,
        explicit,
        kb._dictionary,
        kb.program,
        axiom_texts(kb._axioms.asserted),
        kb._prefixes,
        kb._last or Statistics("semi-naive", "materialization from scratch"),
        message=message,
        equality=kb._equality,
        mode=kb.mode,
        materialize=[Printer().atom(pattern) for pattern in kb._patterns],
    )
    kb._version = kb._persistence.version
    return kb._version


def store_of(kb: KnowledgeBase) -> Store:
    """The store of a knowledge base that is in one."""
    if kb._persistence is None:
        raise InvalidInput("E500", "the knowledge base is in no store", "kb.save(path) makes one")
    return kb._persistence.store


def differences(kb: KnowledgeBase, first: int, second: int) -> Differences:
    """See `KnowledgeBase.diff`."""
    from corollary.knowledge_base.differences import diff

    return diff(store_of(kb), first, second)


def feed(kb: KnowledgeBase, version: int) -> Iterator[tuple[Commit, Differences]]:
    """See `KnowledgeBase.changes_since`."""
    from corollary.knowledge_base.differences import changes_since

    return changes_since(store_of(kb), version)


def refuse_occupied(path: str | Path) -> None:
    """Fail at once if a build could not make a store in a folder."""
    from corollary.store.marker import refuse_occupied
    from corollary.store.places import local_path

    if not is_empty(path):
        refuse_occupied(local_path(path))


def refuse_too_large(store: Store, limit: int | None) -> None:
    """Fail if the facts of the newest version would not fit into so many bytes."""
    if limit is None:
        return
    from corollary.engines.columnar.budget import readable

    snapshot = store.snapshot()
    found = snapshot.statistics
    size = KEY * (found.facts + found.explicit) * COPIES
    size += EXPANDED * sum(file.size for file in snapshot.term_data)
    if size > limit:
        raise OperationFailed(
            "E406",
            f"an update of {found.facts:,} facts and {snapshot.commit.terms:,} terms needs about"
            f" {readable(size)}, but --limit-memory allows {readable(limit)}",
            "use --engine spark, or raise the limit",
            file=str(store.path),
        )


def empty_store(path: str | Path, width: int = 0) -> Any:
    """A new store for facts of so many arguments, or one that is there and has nothing in it."""
    from corollary.store import Store

    if is_empty(path):
        return Store.open(path)
    return Store.create(path, width=width)


def is_empty(path: str | Path) -> bool:
    """Whether there is a store with nothing in it."""
    from corollary.store import Store

    return is_store(path) and Store.open(path).is_empty()


def is_store(path: str | Path) -> bool:
    """Whether there is a store in a folder."""
    from corollary.store.places import local_path

    return any((local_path(path) / "facts" / "_delta_log").glob("*.json"))


def committed(
    kb: KnowledgeBase,
    asked: Changes[Any],
    done: Changes[Any],
    before: Any,
    axioms: Axioms[Any],
    prefixes: Mapping[str, str],
    message: str,
    batch: str | None = None,
) -> int:
    """Commit what a transaction did in memory; if that fails, memory is as it was before.

    What was done is undone by an update too: it is seldom, and needs nothing of a maintainer.
    """
    from corollary.knowledge_base.stored import Difference

    kept, persistence = kb._maintainer, kb._persistence
    assert persistence is not None, "there is a store"
    assert done.statistics is not None, "an update has statistics"
    after = kept.explicit
    try:
        version: int = persistence.commit(
            Difference.of(done, asked, before, after),
            kept.program,
            axioms.stated,
            axiom_texts(axioms.asserted),
            prefixes,
            done.statistics,
            message=message,
            batch=batch,
        )
    except BaseException:
        lost = asked.deleted.intersection(before).difference(after)
        new = asked.inserted.intersection(after).difference(before)
        kept.update(Changes(lost, new, done.removed_rules, done.added_rules))
        raise
    persistence.compact()
    return version
