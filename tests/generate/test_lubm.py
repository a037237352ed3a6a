"""LUBM as it is generated, beside LUBM as the original generator wrote it."""

import gzip
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pyoxigraph
import pytest
from pyoxigraph import CanonicalizationAlgorithm, Quad, RdfFormat

from benchmarks import lubm_one
from benchmarks.report import DATA
from corollary.algorithms.seminaive import materialize
from corollary.core.dictionary import Dictionary
from corollary.engines.columnar.engine import ColumnarEngine
from corollary.generate import lubm, univ_bench, uobm
from corollary.generate.columns import Columns
from corollary.lang.program import Program

needs_data = pytest.mark.skipif(
    not (DATA / "lubm" / "lubm-1.nt.gz").exists(), reason=f"LUBM(1) is not in {DATA}"
)
ANNOTATIONS = {"label", "comment", "versionInfo"}


def lines(facts: Iterable[Columns]) -> list[str]:
    return [line for columns in facts for line in columns.text().splitlines()]


def profile(found: Iterable[str]) -> Counter[str]:
    """How many members each class and how many facts each property has."""
    counts: Counter[str] = Counter()
    for line in found:
        _, property_, value = line.split(" ", 2)
        name = property_.rpartition("#")[2].rstrip(">")
        counts[value.rpartition("#")[2].rstrip("> .\n") if name == "type" else name] += 1
    return counts


@pytest.fixture(scope="module")
def one() -> list[str]:
    return lines(lubm.facts(1))


@needs_data
def test_counts_are_those_of_the_original(one: list[str]) -> None:
    with gzip.open(DATA / "lubm" / "lubm-1.nt.gz", "rt", encoding="utf-8") as file:
        real = profile(file)
    found = profile(one)
    assert found.keys() == real.keys()
    assert {name: n for name, n in found.items() if not 0.9 < n / real[name] < 1.1} == {}
    assert 0.97 < found.total() / real.total() < 1.03


@needs_data
def test_terms_are_written_as_in_the_original(one: list[str]) -> None:
    """With digits replaced, the generated triples and the original's are the same shapes."""
    with gzip.open(DATA / "lubm" / "lubm-1.nt.gz", "rt", encoding="utf-8") as file:
        real = set(map(shape, file))
    assert set(map(shape, one)) == real


def shape(line: str) -> str:
    text = line.rstrip("\n")
    for digit in "0123456789":
        text = text.replace(digit, "0")
    while "00" in text:
        text = text.replace("00", "0")
    return text


@pytest.mark.parametrize("facts", [lubm.facts, uobm.facts], ids=["lubm", "uobm"])
def test_a_larger_scale_has_the_same_universities_and_more(
    facts: Callable[..., Iterator[Columns]],
) -> None:
    one, two = lines(facts(1, seed=3)), lines(facts(2, seed=3))
    assert set(one) < set(two)
    assert (len(one), len(two)) == (len(set(one)), len(set(two)))
    assert set(lines(facts(1, seed=4))) != set(one)


def test_bounds_of_the_profile() -> None:
    for number in range(1, 4):
        university = lubm.University(number, seed=1)
        departments = len(university.departments)
        assert 15 <= departments <= 25
        sizes = university.staff_sizes
        for place, (least, most) in enumerate(
            (lubm.FULL, lubm.ASSOCIATE, lubm.ASSISTANT, lubm.LECTURERS)
        ):
            assert set(sizes[:, place].tolist()) <= set(range(least, most + 1))
        staff = university.staff.sizes
        assert (university.graduates.sizes >= 3 * staff).all()
        assert (university.graduates.sizes <= 4 * staff).all()
        assert (university.undergraduates.sizes >= 8 * staff).all()
        assert (university.undergraduates.sizes <= 14 * staff).all()


def test_who_does_what(one: list[str]) -> None:
    triples = [line.split(" ", 2) for line in one]

    def pairs(name: str) -> list[tuple[str, str]]:
        end = f"#{name}>"
        return [(s, o.removesuffix(" .")) for s, p, o in triples if p.endswith(end)]

    kinds = pairs("type")
    department = dict(pairs("memberOf")) | dict(pairs("worksFor"))
    assert set(pairs("headOf")) < set(pairs("worksFor"))
    assert all("/FullProfessor" in head for head, _ in pairs("headOf"))
    assert all(department[a] == department[b] for a, b in pairs("advisor"))
    assert not any("/Lecturer" in advisor for _, advisor in pairs("advisor"))
    assisted = [course for _, course in pairs("teachingAssistantOf")]
    assert len(assisted) == len(set(assisted))
    teaching, research = (
        {s for s, kind in kinds if kind.endswith(f"#{name}>")}
        for name in ("TeachingAssistant", "ResearchAssistant")
    )
    assert not teaching & research
    authors = set(pairs("publicationAuthor"))
    papers = {s for s, kind in kinds if kind.endswith("#Publication>")}
    assert all((paper, paper.rpartition("/")[0] + ">") in authors for paper in papers)
    universities = {s for s, kind in kinds if kind.endswith("#University>")}
    assert {o for name in ("doctoral", "masters") for _, o in pairs(f"{name}DegreeFrom")} <= (
        universities
    )


def test_people_of_a_town_are_connected() -> None:
    towns: dict[str, str] = {}
    tied: list[tuple[str, str]] = []
    for columns in uobm.facts(2, seed=5):
        pairs = zip(*(column.to_pylist() for column in columns.arguments), strict=True)
        if columns.relation.endswith("#hometown"):
            towns |= dict(pairs)
        elif columns.relation.endswith("#sameHomeTownWith"):
            tied += pairs
    assert all(towns[one] == towns[other] for one, other in tied)
    assert len(tied) == len(towns) - len(set(towns.values()))
    leader = {person: person for person in towns}

    def find(person: str) -> str:
        while leader[person] != person:
            leader[person] = person = leader[leader[person]]
        return person

    for one, other in tied:
        leader[find(one)] = find(other)
    assert len({find(person) for person in towns}) == len(set(towns.values()))
    assert any(one.split(".")[2] != other.split(".")[2] for one, other in tied)


@needs_data
def test_the_ontology_has_the_axioms_of_the_original() -> None:
    text = "".join(columns.text() for columns in univ_bench.facts())
    path = DATA / "lubm" / "univ-bench.swat-ns.nt"
    assert axioms(text.encode()) == axioms(Path(path).read_bytes())


@needs_data
def test_the_rules_derive_what_those_of_the_papers_do() -> None:
    dictionary = Dictionary()
    engine = ColumnarEngine(dictionary)
    explicit = engine.facts(lubm_one.read(DATA, dictionary))
    found = materialize(Program.parse(univ_bench.rules()), explicit, engine).facts
    wanted = lubm_one.expected(DATA, "L")
    assert len(found) == wanted.facts == 137_931
    assert lubm_one.digest(lubm_one.lines(found, dictionary)) == wanted.sha256


def axioms(ntriples: bytes) -> set[str]:
    """The triples that are no annotations, blank nodes named by what is said about them."""
    graph = pyoxigraph.Dataset()
    for triple in pyoxigraph.parse(ntriples, format=RdfFormat.N_TRIPLES):
        if triple.predicate.value.rpartition("#")[2] not in ANNOTATIONS:
            graph.add(Quad(triple.subject, triple.predicate, triple.object))
    graph.canonicalize(CanonicalizationAlgorithm.UNSTABLE)
    return set(map(str, graph))
