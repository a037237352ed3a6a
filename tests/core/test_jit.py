"""Loops compute the same interpreted and compiled, and are compiled only for large inputs."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from corollary.core import hashing, jit
from corollary.engines.columnar import kernels
from corollary.engines.tuples import tables
from corollary.store import term_hash
from corollary.testing import thresholds
from tests.effort import scaled

ROOT = Path(__file__).resolve().parents[2]


@jit.compiled
def doubled(numbers: Any) -> Any:
    total = np.int64(0)
    for number in numbers:
        total += 2 * number
    return total


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> jit.Kernel:
    """A loop that was never compiled, in a process that has interpreted nothing."""
    monkeypatch.setattr(jit, "_interpreted", 0)
    return jit.Kernel(doubled.py_func)  # type: ignore[attr-defined]


def is_compiled(kernel: jit.Kernel) -> bool:
    return "dispatcher" in vars(kernel)


def test_small_inputs_are_interpreted(fresh: jit.Kernel) -> None:
    assert fresh(np.arange(100)) == 9900
    assert not is_compiled(fresh)


def test_results_are_python_numbers(fresh: jit.Kernel) -> None:
    assert type(fresh(np.arange(3))) is int


def test_a_large_input_is_compiled(fresh: jit.Kernel) -> None:
    with thresholds(interpreted_call_elements=10):
        assert fresh(np.arange(10)) == 90
        assert not is_compiled(fresh)
        assert fresh(np.arange(11)) == 110
        assert is_compiled(fresh)


def test_many_small_inputs_are_compiled(fresh: jit.Kernel) -> None:
    numbers = np.zeros(10_000, np.int64)
    calls = 0
    while not is_compiled(fresh):
        fresh(numbers)
        calls += 1
    assert 10 < calls < 100


def words(random: np.random.Generator, size: int) -> Any:
    """Sorted keys of few and of many bits."""
    return np.unique(random.integers(0, 2 ** int(random.integers(3, 64)), size, np.uint64))


def case(seed: int) -> Iterator[tuple[Any, tuple[Any, ...]]]:
    """Calls of loops that rely on unsigned words or on overflow."""
    random = np.random.default_rng(seed)
    a, b = words(random, 40), words(random, 12)
    data = random.integers(0, 256, 64 + hashing.SLACK).astype(np.uint8)
    starts = np.sort(random.integers(0, 40, 9))
    ends = starts + random.integers(0, 24, 9)
    yield kernels.merge, (a, b, np.zeros(60, np.uint64))
    yield kernels.merge_by_insertion, (a, b, np.zeros(60, np.uint64))
    for keep in (False, True):
        yield kernels.select, (a, b, keep, np.zeros(60, np.uint64))
    yield kernels.differences, (a, b, np.zeros(60, np.uint64), np.zeros(60, np.uint64))
    yield kernels.member, (b, a, np.zeros(len(b), np.bool_))
    yield kernels.distinct, (a, np.uint64(32), np.zeros(60, np.uint64))
    yield kernels.count_distinct, (a, np.uint64(32))
    yield kernels.count_bits, (a,)
    yield (
        kernels.intern,
        (np.full(64, -1), np.zeros(60, np.uint64), 0, a, np.zeros(len(a), np.uint32)),
    )
    yield hashing.hash_spans, (data, starts, ends, np.zeros(9, np.uint32))
    yield term_hash._hash_spans, (data, starts, ends, np.zeros(9, np.uint64))
    for row in random.integers(0, 2**32, (20, 4)).tolist():
        yield tables.row_hash, tuple(row)


@pytest.mark.scaled
def test_interpreted_loops_compute_what_compiled_ones_do() -> None:
    for seed in range(scaled(12)):
        for kernel, arguments in case(seed):
            first, second = ([np.copy(x) if np.ndim(x) else x for x in arguments] for _ in "12")
            with np.errstate(over="ignore"):
                interpreted = kernel.interpreted(*first)
            compiled = kernel.dispatcher(*second)
            assert np.all(np.equal(interpreted or 0, compiled or 0)), kernel.__name__
            for one, two in zip(first, second, strict=True):
                assert np.array_equal(one, two), kernel.__name__


def run(script: str, *arguments: str, **environment: str) -> str:
    """Run a script in a process with other variables of its environment."""
    done = subprocess.run(
        [sys.executable, *(arguments or ("-c", script))],
        env={**os.environ, **environment},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


SMALL = """
import sys
import corollary
kb = corollary.KnowledgeBase(corollary.rules("owl-rl"))
with kb.transaction() as tx:
    tx.insert("[<urn:a>, rdfs:subClassOf, <urn:b>] . [<urn:x>, a, <urn:a>] .")
print(kb.count("[<urn:x>, a, <urn:b>]"), "numba" in sys.modules)
"""


def test_a_small_program_loads_no_compiler() -> None:
    assert run(SMALL) == "1 False\n"


ANNOUNCED = """
from corollary.core.jit import announcing, compiled

@compiled
def one(x):
    return x + 1

@compiled
def two(x):
    return x + 2

with announcing(lambda: print("first")):
    print(one.dispatcher(1), two.dispatcher(1))
with announcing(lambda: print("never")):
    pass
"""


def test_the_first_compilation_is_announced_once(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(ANNOUNCED, encoding="utf-8")
    cache = str(tmp_path / "cache")
    assert run("", str(script), NUMBA_CACHE_DIR=cache) == "first\n2 3\n"
    assert run("", str(script), NUMBA_CACHE_DIR=cache) == "2 3\n"  # all are in the cache


INTERPRETED = """
from random import Random
from corollary.engines.columnar.engine import ColumnarEngine
from corollary.testing import draw, thresholds
from tests.algorithms.replay import replay, states
from tests.dense import composition, modular_program
from tests.streams import stream
from tests.test_tuples import check_stream
from functools import partial
from corollary.algorithms.maintain import ALGORITHMS

for seed in range({cases} // 3):
    check_stream(seed, draw(seed) | {{"least_tuple_steps": 1 << 40}})
for seed in range({cases}):
    case = stream(seed, (composition(seed), modular_program(seed), None)[seed % 3], 8)
    expected = states(case)
    for algorithm in ALGORITHMS[seed % 2 :: 2]:
        with thresholds(**draw(seed)):
            for _ in replay(partial(ColumnarEngine, threads=2), case, algorithm, expected):
                pass
print("done")
"""


@pytest.mark.scaled
def test_interpreted_engines_agree_with_the_oracle() -> None:
    script = INTERPRETED.format(cases=scaled(24))
    assert run(script, NUMBA_DISABLE_JIT="1") == "done\n"


LARGE = """
import corollary
from corollary.testing import thresholds

for steps in (0, 1 << 20):
    with thresholds(bitset_steps_ratio=steps):
        kb = corollary.KnowledgeBase(
            "path(?x, ?y) :- edge(?x, ?y) . path(?x, ?z) :- path(?x, ?y), edge(?y, ?z) .")
        with kb.transaction() as tx:  # more nodes on a cycle than a byte counts
            tx.insert([(n, (n + 1) % 300) for n in range(300)], relation="edge")
        print(kb.count("path"))
"""


def test_numbers_of_few_bits_do_not_overflow() -> None:
    assert run(LARGE, NUMBA_DISABLE_JIT="1") == "90000\n" * 2
