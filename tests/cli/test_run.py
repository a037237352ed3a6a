"""`corollary run` over real files; as a process where signals, memory or Spark are involved."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from corollary.cli.interrupts import interruptible
from tests.cli.calls import call, spawn

CLOSURE = "path(?x, ?y) :- edge(?x, ?y) .\npath(?x, ?z) :- path(?x, ?y), edge(?y, ?z) .\n"


@pytest.fixture
def closure(tmp_path: Path) -> Path:
    (tmp_path / "closure.dl").write_text(CLOSURE)
    (tmp_path / "edge.facts").write_text("a\tb\nb\t3\n")
    return tmp_path


def test_facts_in_materialization_out(closure: Path) -> None:
    done = spawn("run", closure / "closure.dl", "--facts", closure, "--out", closure / "out")
    assert (done.returncode, done.stdout) == (0, "")
    assert (closure / "out" / "path.facts").read_text() == "a\t3\na\tb\nb\t3\n"
    assert (closure / "out" / "edge.facts").read_text() == "a\tb\nb\t3\n"


def test_facts_are_printed_without_out(closure: Path) -> None:
    done = call("run", closure / "closure.dl", "--facts", closure, "--engine", "reference")
    assert done.returncode == 0
    assert done.stdout.splitlines() == [
        'edge("a", "b") .',
        'edge("b", 3) .',
        'path("a", "b") .',
        'path("a", 3) .',
        'path("b", 3) .',
    ]
    assert "5, 3 derived" in done.stderr


CONTRADICTION = """
_odd(?x) :- edge(?x, ?y), NOT edge(?y, ?x) .
[no-way-back] false :- _odd(?x), edge(?x, ?y) .
[no-loops] false :- edge(?x, ?x) .
edge(1, 2) . edge(3, 4) . edge(5, 6) . edge(7, 8) . edge(8, 7) . edge(0, 9) .
"""


@pytest.mark.parametrize("engine", ["columnar", "reference"])
def test_inconsistencies_are_told_of(tmp_path: Path, engine: str) -> None:
    program = tmp_path / "p.dl"
    program.write_text(CONTRADICTION)
    done = call("run", program, "--engine", engine, "--quiet")
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) == 6
    head, *ways, end = done.stderr.splitlines()
    assert head == "inconsistent: no-way-back is contradicted in 4 ways"
    assert (len(ways), end) == (3, "  …")
    report = json.loads(call("run", program, "--engine", engine, "--json").stdout)
    assert report["facts"] == 6
    assert report["relations"] == {"edge": 6}
    [found] = report["inconsistencies"]
    assert (found["rule"], found["count"], len(found["examples"])) == ("no-way-back", 4, 3)
    assert all(re.fullmatch(r"_odd\(\d\)", way[0]) for way in found["examples"])


def test_auxiliary_relations_are_not_written(tmp_path: Path) -> None:
    (tmp_path / "p.dl").write_text(CONTRADICTION)
    call("run", tmp_path / "p.dl", "--out", tmp_path / "out")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["edge.facts"]


def test_explain(closure: Path) -> None:
    command = ("run", closure / "closure.dl", "--facts", closure, "--quiet", "--explain")
    done = call(*command, "path(a, 3)")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        'path("a", 3)   by path(?x, ?z) :- path(?x, ?y), edge(?y, ?z)\n'
        '├─ path("a", "b")   by path(?x, ?y) :- edge(?x, ?y)\n'
        '│  └─ edge("a", "b")   explicit\n'
        '└─ edge("b", 3)   explicit\n'
    )
    for flags in (["--explain-format", "json"], ["--json"]):
        found = json.loads(call(*command, "path(a, 3)", *flags).stdout)
        assert [premise["explicit"] for premise in found["premises"]] == [False, True]
    assert call(*command, "path(a, 3)", "--explain-format", "dot").stdout.count("->") == 3


@pytest.mark.parametrize(
    ("fact", "code"),
    [
        ("path(3, a)", "E340"),
        ("path(3)", "E203"),
        ("nowhere(3)", "E344"),
        ("path(?x, a)", "E208"),
        ("path(a", "E101"),
    ],
)
def test_explain_what_is_not_there(closure: Path, fact: str, code: str) -> None:
    done = call("run", closure / "closure.dl", "--facts", closure, "--explain", fact)
    assert (done.returncode, done.stdout) == (2, "")
    assert code in done.stderr


def test_json(closure: Path) -> None:
    done = call("run", closure / "closure.dl", "--facts", closure, "--json")
    report = json.loads(done.stdout)
    assert report["relations"] == {"edge": 2, "path": 3}
    assert (report["explicit"], report["facts"], report["complete"]) == (2, 5, True)
    assert set(report["seconds"]) == {"read", "encode", "materialize", "write"}
    assert report["engine"] == "columnar"
    assert report["derivations"] == {"nonrecursive": 2, "linear path": 1}


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", "E303: {file} holds no rule and no fact"),
        (b"% nothing but a comment\n", "E303: {file} holds no rule and no fact"),
        (bytes(range(256)), "E302: {file} is not UTF-8 text: byte 0x80 at offset 128"),
        (b"\x7fELF\x00\x00\x01\x02", "{file}:1:1: E108: unexpected character U+007F"),
        (b"x" * 10_000_000, "{file}:1:1: E511: 'xxxxxxxxxxxxxxxxxxxx…' has 10000000 bytes"),
        (b'p("' + b"x" * 10_000_000, "{file}:1:3: E102: this string has no closing double quote"),
        (b'p("open) .\n', "{file}:1:3: E102: this string has no closing double quote"),
        (
            b"p(?x) :- q(?x), FILTER(" + b"(" * 1_000_000,
            "{file}:1:124: E105: this expression is nested",
        ),
        (b"p(?x) :- q(?x), FILTER(" + b"!" * 5000 + b"?x) .", "E105: this expression is nested"),
        (b"p(?x) :- q(?x), FILTER(1" + b"+1" * 5000 + b"=?x) .", "E105: this expression is nested"),
        (b"p(" * 100_000, "{file}:1:3: E101: 'p(…)' cannot stand in"),
        (b"p(?x) :- q(?x).\r\nq(?y).\r\n", "{file}:2:3: E208: a fact has constants only"),
        (b"\xef\xbb\xbfp(?x) .", "{file}:1:3: E208: a fact has constants only"),
        (b"p(1) .\np(1, 2) .\n", "{file}:2:1: E203: 'p' has 2 arguments here, but 1 argument"),
    ],
    ids=lambda value: value[:12].decode("latin-1") if isinstance(value, bytes) else "",
)
def test_bad_programs(tmp_path: Path, data: bytes, expected: str) -> None:
    file = tmp_path / "program.dl"
    file.write_bytes(data)
    done = call("run", file)
    assert done.returncode == 2
    assert expected.format(file=file) in done.stderr
    assert "Traceback" not in done.stderr
    assert max(map(len, done.stderr.splitlines())) < 300 + 2 * len(str(file))


def test_windows_line_ends_and_byte_order_mark(tmp_path: Path) -> None:
    file = tmp_path / "program.dl"
    file.write_bytes(b"\xef\xbb\xbfq(1) .\r\np(?x) :- q(?x) .\r\n")
    done = call("run", file)
    assert (done.returncode, done.stdout.splitlines()) == (0, ["p(1) .", "q(1) ."])


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["none.dl"], "E301: cannot read {folder}/none.dl: No such file or directory"),
        (["closure.dl", "--facts", "none"], "E301: cannot read the folder"),
        (["closure.dl", "--facts", "empty"], "E304: no facts file for edge"),
        (["empty"], "E301: cannot read {folder}/empty: Is a directory"),
    ],
)
def test_missing_input(closure: Path, arguments: list[str], expected: str) -> None:
    (closure / "empty").mkdir()
    paths = [a if a.startswith("--") else closure / a for a in arguments]
    done = call("run", *paths)
    assert done.returncode == 2
    assert expected.format(folder=closure) in done.stderr
    assert "Traceback" not in done.stderr


def test_errors_as_json(tmp_path: Path) -> None:
    (tmp_path / "p.dl").write_text("p(?x) .\nq(?y) .\n")
    done = call("run", tmp_path / "p.dl", "--json")
    report = json.loads(done.stderr)
    assert report["error"]["code"] == "E208"
    assert (report["error"]["line"], report["error"]["column"]) == (1, 3)
    assert [error["line"] for error in report["errors"]] == [1, 2]
    assert done.stdout == ""


def test_failed_output_is_status_1(closure: Path) -> None:
    (closure / "file").write_text("")
    done = call("run", closure / "closure.dl", "--facts", closure, "--out", closure / "file" / "x")
    assert done.returncode == 1
    assert "E401: cannot write" in done.stderr
    done = call("run", closure / "closure.dl", "--facts", closure, "--out", closure / "closure.dl")
    assert "closure.dl is not a folder" in done.stderr


def test_help_tells_every_flag() -> None:
    done = call("run", "--help")
    assert done.returncode == 0
    for flag in (
        *("--facts", "--out", "--format", "--engine", "--threads", "--json", "--quiet"),
        *("--limit-facts", "--limit-seconds", "--limit-rounds", "--limit-memory"),
    ):
        assert flag in done.stdout


COUNTING = """\
grow(?x, ?y, ?z, ?w) :- n(?x), n(?y), n(?z), n(?w) .
"""


def large(folder: Path, text: str) -> Path:
    (folder / "n.facts").write_text("".join(f"{number}\n" for number in range(200)))
    (folder / "large.dl").write_text(text)
    return folder / "large.dl"


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        (
            ["--limit-facts", "1000"],
            "E405: stopped by --limit-facts 1000: the result is incomplete",
        ),
        (["--limit-rounds", "3"], "E405: stopped by --limit-rounds 3: the result is incomplete"),
    ],
)
def test_limits_of_rounds_and_facts(tmp_path: Path, limit: list[str], expected: str) -> None:
    chain = "next(?x, ?y) :- n(?x), n(?y), FILTER(?x + 1 = ?y) .\n"
    chain += "far(?x, ?y) :- next(?x, ?y) .\nfar(?x, ?z) :- far(?x, ?y), next(?y, ?z) .\n"
    program = large(tmp_path, chain)
    out = tmp_path / "out"
    done = call("run", program, "--facts", tmp_path, "--out", out, *limit)
    assert done.returncode == 1
    assert expected in done.stderr
    assert "nothing was written" in done.stderr
    assert not out.exists()


@pytest.mark.parametrize("engine", ["columnar", "reference"])
@pytest.mark.parametrize("limit", ["--limit-rounds 5", "--limit-facts 20", "--limit-seconds 0.5"])
def test_every_engine_in_process_has_limits(tmp_path: Path, engine: str, limit: str) -> None:
    (tmp_path / "endless.dl").write_text("n(0) . n(?m) :- n(?k), BIND(?k + 1 AS ?m) .")
    done = call("run", tmp_path / "endless.dl", "--engine", engine, "--quiet", *limit.split())
    assert done.returncode == 1
    assert f"E405: stopped by {limit}: the result is incomplete" in done.stderr


def test_the_reference_engine_refuses_what_it_cannot_do(closure: Path) -> None:
    done = call("run", closure / "closure.dl", "--engine", "reference", "--equality", "rewrite")
    assert done.returncode == 2
    assert "E313: --equality rewrite needs another engine than reference" in done.stderr


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        (["--limit-seconds", "1"], "E405: stopped by --limit-seconds 1: the result is incomplete"),
        (["--limit-memory", "700M"], "E406: "),
    ],
)
def test_limits_inside_a_round(tmp_path: Path, limit: list[str], expected: str) -> None:
    program = large(tmp_path, "n(?x) :- n(?x) .\n" + COUNTING)
    out = tmp_path / "out"
    done = spawn("run", program, "--facts", tmp_path, "--out", out, *limit)
    assert done.returncode == 1
    assert expected in done.stderr
    assert "Traceback" not in done.stderr
    assert not out.exists()


def test_ctrl_c_stops_without_a_result(tmp_path: Path) -> None:
    program = large(tmp_path, COUNTING)
    command = [sys.executable, "-m", "corollary.cli.main", "run", str(program)]
    command += ["--facts", str(tmp_path), "--out", str(tmp_path / "out")]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(timeout=4)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "stopped by Ctrl-C: the result is incomplete" in errors
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("format_", ["csv", "parquet", "arrow"])
def test_other_formats(closure: Path, format_: str) -> None:
    out = closure / "out"
    arguments: list[str | Path] = ["run", closure / "closure.dl", "--facts", closure, "--out", out]
    assert call(*arguments, "--format", format_).returncode == 0
    assert (out / f"path.{format_}").exists()
    (out / f"path.{format_}").unlink()
    again = call("run", closure / "closure.dl", "--facts", out, "--json")
    assert json.loads(again.stdout)["relations"] == {"edge": 2, "path": 3}


@pytest.mark.long
@pytest.mark.spark
def test_spark_gives_the_same(closure: Path) -> None:
    (closure / "closure.dl").write_text(
        CLOSURE + "far(?x) :- path(?x, 3), NOT edge(?x, 3) .\n"
        "[?x, a, <http://example.org/Node>] :- edge(?x, ?y) ."
    )
    arguments: list[str | Path] = ["run", closure / "closure.dl", "--facts", closure, "--engine"]
    spark, columnar = (spawn(*arguments, engine) for engine in ("spark", "columnar"))
    assert spark.returncode == 0
    assert spark.stdout == columnar.stdout
    assert 'far("a") .' in spark.stdout


@pytest.mark.parametrize(
    ("flag", "value"),
    [("--limit-facts", "0"), ("--limit-seconds", "-1"), ("--limit-memory", "many")],
)
def test_bad_flags(closure: Path, flag: str, value: str) -> None:
    done = call("run", closure / "closure.dl", flag, value)
    assert done.returncode == 2
    assert flag in done.stderr
    assert "Traceback" not in done.stderr


def test_spark_that_is_not_installed(closure: Path) -> None:
    code = "import sys; sys.modules['pyspark'] = None; from corollary.cli.main import main; "
    code += "sys.exit(main(sys.argv[1:]))"
    arguments = ["run", str(closure / "closure.dl"), "--facts", str(closure), "--engine", "spark"]
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=120)
    assert done.returncode == 1
    assert "E403: the Spark engine needs pyspark" in done.stderr
    assert "Traceback" not in done.stderr


def lose_an_interruption() -> None:
    with interruptible():
        with contextlib.suppress(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(10)
        time.sleep(10)


def test_an_interruption_that_gets_lost_comes_again() -> None:
    """As where Python runs a callback when the signal arrives."""
    with pytest.raises(KeyboardInterrupt):
        lose_an_interruption()


ONTOLOGY = """
<urn:Student> <http://www.w3.org/2000/01/rdf-schema#subClassOf> <urn:Person> .
<urn:ann> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <urn:Student> .
<urn:ann> <http://www.w3.org/2002/07/owl#sameAs> <urn:anna> .
<urn:ann> <urn:name> "Ann" .
"""
PERSON = "<urn:anna> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <urn:Person> ."


@pytest.mark.parametrize("flags", [(), ("--equality", "rewrite"), ("--engine", "reference")])
def test_rule_sets_are_written_out(tmp_path: Path, flags: tuple[str, ...]) -> None:
    """The same facts in every way; what is no RDF is in a file of its own, and said to be there."""
    (tmp_path / "data.nt").write_text(ONTOLOGY)
    command = ["run", "--rules", "owl-rl", "--data", str(tmp_path / "data.nt"), *flags]
    done = call(*command, "--out", str(tmp_path / "out"), "--json")
    report = json.loads(done.stdout)
    lines = (tmp_path / "out" / "triples.nt").read_text().splitlines()
    others = (tmp_path / "out" / "triples.generalized").read_text().splitlines()
    assert PERSON in lines
    assert not any(line.startswith('"') for line in lines)
    assert all(line.startswith('"') for line in others)
    assert report["generalized"] == len(others) > 0
    assert report["facts"] == len(lines) + len(others) == report["relations"]["triples"]
    assert f"generalized: {len(others):,} triples" in done.stderr
    assert report["facts"] == 122


def test_limits_and_proofs_with_rule_sets(tmp_path: Path) -> None:
    (tmp_path / "data.nt").write_text(ONTOLOGY)
    command = ["run", "--rules", "owl-rl", "--data", str(tmp_path / "data.nt")]
    stopped = call(*command, "--limit-facts", "20")
    assert stopped.returncode == 1
    assert "--limit-facts 20" in stopped.stderr
    proof = call(*command, "--explain", "[<urn:anna>, a, <urn:Person>]").stdout
    assert "cax-sco" in proof
    assert "eq-rep-s" in proof
