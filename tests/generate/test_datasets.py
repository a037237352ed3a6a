"""Every dataset: the same twice, readable by others, and ready to run."""

import gzip
import json
from hashlib import sha256
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyoxigraph
import pytest
from pyoxigraph import RdfFormat

from corollary.cli.main import main
from corollary.errors import InvalidInput
from corollary.generate import DATASETS, claros, dag, skos
from corollary.generate.datasets import File
from corollary.generate.write import LIST, write
from corollary.knowledge_base.folders import read_folder
from corollary.lang.program import Program

SMALL = {"lubm": 1, "uobm": 1, "dag": 0.02, "clique": 20, "skos": 0.02, "claros": 0.05}


def facts_of(file: File) -> bytes:
    return b"".join(columns.lines() for columns in file.facts())


def digest(name: str, seed: int) -> str:
    files = DATASETS[name].files(SMALL[name], seed)
    return sha256(b"".join(map(facts_of, files))).hexdigest()


def test_all_have_a_small_scale() -> None:
    assert SMALL.keys() == DATASETS.keys()


@pytest.mark.parametrize("name", SMALL)
def test_the_seed_decides(name: str) -> None:
    assert digest(name, 1) == digest(name, 1) != digest(name, 2)


@pytest.mark.parametrize("name", SMALL)
def test_no_fact_is_there_twice(name: str) -> None:
    lines = [
        line for file in DATASETS[name].files(SMALL[name]) for line in facts_of(file).splitlines()
    ]
    assert len(lines) == len(set(lines)) > 0


@pytest.mark.parametrize("name", SMALL)
def test_files_parse(name: str) -> None:
    for file in DATASETS[name].files(SMALL[name]):
        if file.name.endswith(".dl"):
            assert Program.parse(file.text).rules
        elif file.name.endswith(".nt"):
            data = facts_of(file)
            found = pyoxigraph.parse(data, format=RdfFormat.N_TRIPLES)
            assert sum(1 for _ in found) == data.count(b"\n")
        else:
            assert all(line.count(b"\t") == 1 for line in facts_of(file).splitlines())


# What the program must derive: so many facts in all.
DERIVED = {
    "clique": ("program.dl", 20 * 19 + 20 * 20),
    "dag": ("program.dl", None),
    "skos": ("rules.dl", None),
    "claros": ("rules.dl", None),
}


@pytest.mark.parametrize("name", DERIVED)
def test_programs_run(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(DATASETS[name], tmp_path, scale=SMALL[name])
    program, expected = DERIVED[name]
    assert main(["run", str(tmp_path / program), "--facts", str(tmp_path), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["facts"] > 2 * report["explicit"]
    assert expected in (None, report["facts"])


@pytest.mark.parametrize("name", ["lubm", "uobm"])
def test_rules_read_what_is_generated(name: str) -> None:
    """Every property and class that the data has occurs in the rules, but for plain attributes."""
    files = {file.name: file for file in DATASETS[name].files(1)}
    rules = files["rules.dl"].text
    properties = {columns.relation for columns in files["University0.nt"].facts()}
    unread = {p.rpartition("#")[2] for p in properties if f":{p.rpartition('#')[2]}," not in rules}
    assert unread == {"type", "name", "researchInterest"}


def test_components_of_places() -> None:
    sizes = claros.component_sizes(claros.PLACES)
    assert (sizes.max(), sizes.sum()) == (400, claros.PLACES)
    assert (sizes >= 100).sum() >= 5
    assert claros.component_sizes(2).sum() == 2


def test_a_hierarchy_has_chains_and_cycles() -> None:
    pairs = skos.hierarchy(10_000, np.random.default_rng(0))
    known = set(map(tuple, pairs.tolist()))
    assert any((above, below) in known for below, above in known)
    assert len({below for below, _ in known}) >= 9_999  # all but the top have a broader one


def test_the_graph_of_the_paper() -> None:
    graph = dag.random_dag(dag.EDGES)
    assert (graph.nodes, len(graph.edges)) == (10_000, 100_000)
    assert len(np.unique(graph.edges)) > 9_990


@pytest.mark.parametrize(
    ("name", "scale", "message"),
    [
        ("lubm", 1.5, "must be a whole number, found 1.5"),
        ("clique", 1, "must be between 2 and 100,000, found 1"),
        ("dag", 0, "must be above 0, found 0"),
        ("skos", float("nan"), "must be above 0, found nan"),
        ("lubm", float("inf"), "must be above 0, found inf"),
        ("lubm", 1e300, "must be between 1 and 100,000, found 1e[+]300"),
    ],
)
def test_scales_that_make_no_sense(name: str, scale: float, message: str) -> None:
    with pytest.raises(InvalidInput, match=message) as caught:
        DATASETS[name].files(scale)
    assert caught.value.code == "E330"


@pytest.mark.parametrize("compress", ["none", "gzip", "zstd"])
def test_compressed_files_hold_the_same(compress: str, tmp_path: Path) -> None:
    for folder in ("one", "two"):
        write(DATASETS["claros"], tmp_path / folder, scale=0.01, compress=compress)
    suffix = {"none": "", "gzip": ".gz", "zstd": ".zst"}[compress]
    path = tmp_path / "one" / f"claros.nt{suffix}"
    assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes()
    with pa.input_stream(str(path), compression="detect") as stream:
        assert stream.read() == facts_of(DATASETS["claros"].files(0.01)[0])
    if compress == "gzip":
        assert gzip.decompress(path.read_bytes()).endswith(b" .\n")
    tables = read_folder(tmp_path / "one", Program.load(tmp_path / "one" / "rules.dl"))
    about = json.loads((tmp_path / "one" / LIST).read_text())
    assert about == {
        "dataset": "claros", "scale": 0.01, "seed": 0, "files": [path.name, "rules.dl"]
    }  # fmt: skip
    assert sum(len(table.columns[0].indices) for table in tables) > 1000
