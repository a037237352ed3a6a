"""Reading 10,000 rules."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from benchmarks.isolate import isolated
from benchmarks.measure import least, timed
from benchmarks.report import Benchmark, Options, Row
from benchmarks.views import Column, View
from corollary.lang.program import Program

# The shapes of rules that an ontology turns into, and some that people write.
SHAPES = (
    "[?x, a, ex:C{a}] :- [?x, a, ex:C{b}] .",
    "[?x, a, ex:C{a}] :- [?x, ex:p{b}, ?y] .",
    "[?y, a, ex:C{a}] :- [?x, ex:p{b}, ?y] .",
    "[?x, ex:p{a}, ?y] :- [?x, ex:p{b}, ?y] .",
    "[?y, ex:p{a}, ?x] :- [?x, ex:p{b}, ?y] .",
    "[?x, a, ex:C{a}] :- [?x, ex:p{b}, ?y], [?y, a, ex:C{c}] .",
    "[?x, ex:p{a}, ?z] :- [?x, ex:p{b}, ?y], [?y, ex:p{c}, ?z] .",
    "<http://example.org/q{a}>(?x, ?z) :- <http://example.org/q{a}>(?x, ?y), ex:q{a}(?y, ?z) .",
    'r{a}(?x, ?n) :- s{b}(?x, ?n, "text"), FILTER(?n >= {c}) .',
    "t{a}(?x) :- r{b}(?x, ?n), NOT u{c}(?x) .",
)


def run(options: Options) -> Iterator[Row]:
    """Programs of each size."""
    for rules in options.scales:
        yield {"case": "parse"} | isolated(
            parse, timeout=options.timeout, rules=rules, repeat=options.repeat
        )


def text(rules: int) -> str:
    """A program with this many distinct rules."""
    lines = ["@prefix ex: <http://example.org/> ."]
    around = -(-rules // len(SHAPES))
    for number in range(rules):
        a, shape = divmod(number, len(SHAPES))
        # Heads and bodies overlap, which creates long dependencies and cycles.
        b, c = (a * 7 + 3) % around, (a * 11 + 5) % around
        lines.append(SHAPES[shape].format(a=a, b=b, c=c))
    return "\n".join(lines)


def parse(rules: int, repeat: int) -> Row:
    """Read and validate a program, then compute its strata."""
    source = text(rules)
    reading, ordering = [], []
    program = Program()
    for _ in range(repeat):
        program, time = timed(partial(Program.parse, source))
        reading.append(time)
        _, time = timed(partial(getattr, program, "strata"))
        ordering.append(time)
    time = least(reading)
    return {
        "rules": len(program.rules),
        "bytes": len(source.encode()),
        "seconds": time.seconds,
        "cpu_seconds": time.cpu_seconds,
        "rules_per_second": rules / time.seconds,
        "strata": len(program.strata),
        "strata_seconds": least(ordering).seconds,
        "correct": len(program.rules) == rules,
    }


BENCHMARK = Benchmark(
    "rules10k",
    "reading 10,000 rules",
    unit="rules",
    scales=(10_000,),
    small=(10_000,),
    run=run,
    views=(
        View(
            "Reading rules",
            (
                "rules",
                "seconds",
                Column("rules_per_second", "rules/s"),
                "strata",
                Column("strata_seconds", "strata: s"),
                "correct",
            ),
        ),
    ),
)
