"""Public functions refuse values that they cannot use; closed ones; and other threads wait."""

from __future__ import annotations

import contextlib
import copy
import inspect
import os
import pickle
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import rdflib

import corollary
from corollary import CorollaryError, KnowledgeBase, Program
from corollary.knowledge_base.rdflib_store import CorollaryStore

VALUES: list[Any] = [
    None, 5, -1, 3.5, True, "x y", "", b"b", object(), [], [1], {}, {1: 2}, (1, 2, 3), len,
    (None, None, None), "<urn:a>", "[?x, ?y", "a\0b.ttl", Path("a\0b"),
]  # fmt: skip
# Arguments with which functions that need some can run, so that their options are tried as well.
GOOD = {
    "query": ("SELECT * { ?s ?p ?o }",),
    "explain_query": ("ASK { ?s ?p ?o }",),
    "update": ("INSERT DATA { <urn:q> <urn:p> <urn:r> }",),
    "why_not": ("<urn:y> a <urn:b>",),
    "diff": (1,),
    "changes_since": (1,),
    "load": (),
    "parse": ("p(1) .",),
    "rules": ("rhodf",),
    "expand": (rdflib.Graph(),),
}
FACT = "<urn:x> a <urn:a>"


def calls(function: Callable[..., Any]) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Arguments of wrong types: all that are required, or one that is optional."""
    parameters = inspect.signature(function).parameters.values()
    plain = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    required = [p for p in parameters if p.default is p.empty and p.kind in plain]
    good = GOOD.get(function.__name__, (FACT,) * len(required))
    for value in VALUES:
        yield (value,) * len(required), {}
        for parameter in parameters:
            if parameter.default is not parameter.empty:
                yield good, {parameter.name: value}


def tried(function: Callable[..., Any]) -> None:
    """Call a function in all wrong ways: it may work, or end in an error of ours."""
    for arguments, options in calls(function):
        with contextlib.suppress(CorollaryError):
            result = function(*arguments, **options)
            if inspect.isgenerator(result):
                list(result)


def methods(of: object) -> list[str]:
    hidden = ("state", "open", "save", "close", "request", "rollback")
    names = [name for name in dir(of) if not name.startswith("_") and name not in hidden]
    return [name for name in names if callable(getattr(type(of), name))]


@pytest.fixture
def stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> KnowledgeBase:
    monkeypatch.chdir(tmp_path)  # where no file has the name of a value
    kb = KnowledgeBase("rhodf")
    kb.save("pets.store")
    kb.insert("<urn:a> rdfs:subClassOf <urn:b> . <urn:x> a <urn:a> .")
    return kb


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
def test_methods_refuse_what_they_cannot_use(stored: KnowledgeBase) -> None:
    assert len(methods(stored)) > 20
    for name in methods(stored):
        if name not in ("check", "inconsistencies"):
            tried(getattr(stored, name))
    tried(KnowledgeBase.open)
    tried(stored.save)


@pytest.mark.filterwarnings("ignore")
def test_functions_refuse_what_they_cannot_use(stored: KnowledgeBase) -> None:
    functions: list[Callable[..., Any]] = [
        KnowledgeBase, Program.parse, Program.load,
        corollary.rules, corollary.expand, corollary.materialize,
    ]  # fmt: skip
    for function in functions:
        tried(function)
    for name in methods(stored.transaction()):
        for arguments, options in calls(getattr(stored.transaction(), name)):
            tx = stored.transaction()
            with contextlib.suppress(CorollaryError), tx:
                getattr(tx, name)(*arguments, **options)


@pytest.mark.parametrize("limit", ["3", 3.5, [], True])
@pytest.mark.parametrize("function", ["check", "inconsistencies"])
def test_limits_are_numbers(function: str, limit: Any) -> None:
    with pytest.raises(CorollaryError, match=f"a whole number as 'limit' of {function}"):
        getattr(KnowledgeBase(), function)(limit=limit)


def test_a_closed_knowledge_base(stored: KnowledgeBase) -> None:
    table = stored.match("<urn:x>")
    with stored.transaction() as tx:
        tx.insert("<urn:y> a <urn:a>")
    changes = tx.changes
    with stored as kb:
        assert "<urn:y> a <urn:b>" in kb
    kb.close()
    assert repr(kb) == "<KnowledgeBase: closed>"
    for name in methods(kb):
        with pytest.raises(CorollaryError) as caught:
            getattr(kb, name)(*GOOD.get(name, (FACT,)[: name not in ("check", "log", "schema")]))
        assert caught.value.code == "E347"
        assert "KnowledgeBase.open" in str(caught.value)
    for use in (len, KnowledgeBase._repr_html_, lambda kb: FACT in kb, KnowledgeBase.__enter__):
        with pytest.raises(CorollaryError, match="E347"):
            use(kb)
    with pytest.raises(CorollaryError, match="E347"), tx:
        pass
    assert len(table) == 2
    assert len(changes) == len(str(changes).splitlines()) == 2
    with KnowledgeBase.open("pets.store") as again:
        assert len(again.match("<urn:y>")) == 2


def test_a_transaction_that_ends_after_the_knowledge_base(stored: KnowledgeBase) -> None:
    tx = stored.transaction()
    tx.__enter__()
    tx.insert("<urn:y> a <urn:a>")
    stored.close()
    with pytest.raises(CorollaryError, match="E347"):
        tx.__exit__(None, None, None)
    assert KnowledgeBase.open("pets.store").version == 2


def test_threads_wait_for_each_other() -> None:
    kb = KnowledgeBase("rhodf")
    kb.insert("<urn:a> rdfs:subClassOf <urn:b>")
    failed: list[BaseException] = []

    def work(thread: int) -> None:
        try:
            for number in range(5):
                fact = f"<urn:{thread}/{number}> a "
                kb.insert(f"{fact}<urn:a>")
                assert f"{fact}<urn:b>" in kb
                assert kb.query(f"ASK {{ {fact}<urn:b> }}") is True
                assert kb.explain(f"{fact}<urn:b>").height == 1
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(thread,)) for thread in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert kb.count("[?x, a, <urn:b>]") == 15


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore:This process")
def test_a_fork_does_not_wait_for_threads_that_it_lacks() -> None:
    kb = KnowledgeBase("p(1) .")
    inside, over = threading.Event(), threading.Event()

    def hold() -> None:
        with kb.state.guard:
            inside.set()
            over.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    inside.wait()
    child = os.fork()
    if child == 0:
        os._exit(len(kb))
    _, status = os.waitpid(child, 0)
    over.set()
    thread.join()
    assert os.waitstatus_to_exitcode(status) == 1


def test_copies_of_programs_and_transactions() -> None:
    program = corollary.rules("rhodf")
    for copied in (pickle.loads(pickle.dumps(program)), copy.copy(program), copy.deepcopy(program)):
        assert (copied, str(copied)) == (program, str(program))
    tx = KnowledgeBase().transaction()
    for mistake in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(CorollaryError, match="E346"):
            mistake(tx)


def test_values_of_a_store_can_be_pickled(stored: KnowledgeBase) -> None:
    stored.insert("<urn:x> a <urn:c>")
    for value in (
        stored.diff(1),
        stored.check(),
        stored.schema(),
        stored.why_not("<urn:q> a <urn:b>"),
    ):
        assert repr(pickle.loads(pickle.dumps(value))) == repr(copy.deepcopy(value))
    assert repr(stored.diff(1)) == "<Differences: 4 of version 1 to 3>"


def test_stores_of_rdflib_refuse_what_they_cannot_use(stored: KnowledgeBase) -> None:
    with pytest.raises(CorollaryError, match="E345"):
        CorollaryStore(5)  # type: ignore[arg-type]
