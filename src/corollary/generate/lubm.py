"""LUBM: universities with their departments, staff, students, courses and publications.

Paper: Guo, Pan, Heflin: LUBM: A Benchmark for OWL Knowledge Base Systems, J. Web Semantics, 2005.

Idea: every number below is drawn uniformly between the bounds that the paper and its generator
(UBA 1.7) give, and IRIs are written as that generator writes them. A university is drawn from its
own stream of random numbers, all departments at once, and becomes text column by column.

Invariants: university k depends on the seed and on k alone, so that a larger scale has the same
triples and more; no triple is there twice.

Differs from the original: other random numbers, so other links; all 1,000 universities that degrees
come from are declared, whether somebody has a degree from them or not (the original declares those
that are met, and again in every file).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa

from corollary.generate import univ_bench
from corollary.generate.columns import (
    Columns,
    Numbers,
    digits,
    join,
    members,
    numbered,
    pick,
    triples,
)
from corollary.generate.datasets import Dataset, File
from corollary.generate.draw import Bounds, between, expand, shuffled, some
from corollary.generate.univ_bench import UB

# Bounds of UBA 1.7 (`Generator.java`): least and most.
DEPARTMENTS: Bounds = (15, 25)
FULL, ASSOCIATE, ASSISTANT, LECTURERS = (7, 10), (10, 14), (8, 11), (5, 7)
PAPERS = (15, 20), (10, 18), (5, 10), (0, 5)  # of each of these four
COURSES: Bounds = (1, 2)  # of a member of staff, and as many graduate courses
UNDERGRADUATES, GRADUATES = (8, 14), (3, 4)  # for each member of staff
TAKEN, TAKEN_BY_GRADUATES, CO_AUTHORED = (2, 4), (1, 3), (0, 5)
GROUPS: Bounds = (10, 20)
TEACHING, RESEARCHING = (5, 4), (4, 3)  # one graduate in this many is an assistant
ADVISED = 5  # one undergraduate in this many has an advisor
DEGREE_UNIVERSITIES, INTERESTS = 1_000, 30

RANKS = ("FullProfessor", "AssociateProfessor", "AssistantProfessor", "Lecturer")
_LECTURER = 3  # the only rank that neither advises nor has a field of research

# Chosen so that University0 of seed 0 has 15 departments and about as many triples as that of the
# original's seed 0; other seeds and universities have 15 to 25.
_STREAM = 49


@dataclass(frozen=True)
class Group:
    """Everyone (or everything) of one kind, department by department."""

    iris: pa.Array
    names: pa.Array  # such as FullProfessor0
    department: Numbers
    sizes: Numbers  # of each department

    def __len__(self) -> int:
        return len(self.department)

    def rows(self, department: Numbers, number: Numbers) -> Numbers:
        """Where the members with these numbers in these departments are."""
        first: Numbers = np.cumsum(self.sizes) - self.sizes
        return first[department] + number


class University:
    """One university, drawn when it is made.

    >>> university = University(0)
    >>> university.staff.iris[0].as_py()
    '<http://www.Department0.University0.edu/FullProfessor0>'
    >>> len(university.departments) in range(15, 26)
    True
    """

    def __init__(self, number: int, seed: int = 0) -> None:
        self.rng = np.random.default_rng([_STREAM, seed, number])
        self.iri = f"<http://www.University{number}.edu>"
        self.name = f"University{number}"
        count = int(between(self.rng, DEPARTMENTS, 1)[0])
        self.hosts = numbered("Department", np.arange(count), f".{self.name}.edu")
        self.departments = join("<http://www.", self.hosts, ">")
        self._draw_staff(count)
        self.undergraduates = self._students("UndergraduateStudent", UNDERGRADUATES)
        self.graduates = self._students("GraduateStudent", GRADUATES)
        self.groups = self._group("ResearchGroup", between(self.rng, GROUPS, count))

    def _draw_staff(self, count: int) -> None:
        bounds = (FULL, ASSOCIATE, ASSISTANT, LECTURERS)
        sizes = np.stack([between(self.rng, bound, count) for bound in bounds], axis=1)
        place, number = expand(sizes.ravel())
        department, self.rank = np.divmod(place, len(RANKS))
        self.staff_sizes = sizes
        names = join(pick(pa.array(RANKS), self.rank), digits(number))
        self.staff = Group(self._iris(department, names), names, department, sizes.sum(axis=1))

        least, most = np.array(PAPERS).T
        self.author, number = expand(self.rng.integers(least[self.rank], most[self.rank] + 1))
        names = numbered("Publication", number)
        of = department[self.author]
        papers = self._iris(of, join(pick(self.staff.names, self.author), "/", names))
        self.papers = Group(papers, names, of, np.bincount(of, minlength=count))

        self.teacher, self.courses = self._courses("Course")
        self.graduate_teacher, self.graduate_courses = self._courses("GraduateCourse")

    def _courses(self, kind: str) -> tuple[Numbers, Group]:
        """Who teaches, and the courses of a kind: numbered in the order of the teachers."""
        teacher, _ = expand(between(self.rng, COURSES, len(self.staff)))
        of = self.staff.department[teacher]
        return teacher, self._group(kind, np.bincount(of, minlength=len(self.departments)))

    def _students(self, kind: str, for_each: Bounds) -> Group:
        least, most = (bound * self.staff.sizes for bound in for_each)
        return self._group(kind, self.rng.integers(least, most + 1))

    def _group(self, kind: str, sizes: Numbers) -> Group:
        department, number = expand(sizes)
        names = numbered(kind, number)
        return Group(self._iris(department, names), names, department, sizes)

    def _iris(self, department: Numbers, names: pa.Array) -> pa.Array:
        return join("<http://www.", pick(self.hosts, department), "/", names, ">")

    def facts(self) -> Iterator[Columns]:
        """All that is known about the university."""
        yield from self._organizations()
        yield from self._people()
        yield from self._staff()
        yield from self._studies()
        yield from self._assistants()
        yield from self._papers()

    def _organizations(self) -> Iterator[Columns]:
        count = len(self.departments)
        yield members(UB + "University", pa.array([self.iri]))
        yield members(UB + "Department", self.departments)
        yield members(UB + "ResearchGroup", self.groups.iris)
        yield triples(UB + "subOrganizationOf", self.departments, pa.repeat(self.iri, count))
        within = pick(self.departments, self.groups.department)
        yield triples(UB + "subOrganizationOf", self.groups.iris, within)
        departments = numbered('"Department', np.arange(count), '"')
        yield triples(UB + "name", pa.array([self.iri]), pa.array([f'"{self.name}"']))
        yield triples(UB + "name", self.departments, departments)

    def _people(self) -> Iterator[Columns]:
        for group in (self.staff, self.undergraduates, self.graduates):
            hosts = pick(self.hosts, group.department)
            addresses = join('"', group.names, "@", hosts, '"')
            yield self._named(group)
            yield triples(UB + "emailAddress", group.iris, addresses)
            telephones = pa.repeat('"xxx-xxx-xxxx"', len(group))  # what the original writes
            yield triples(UB + "telephone", group.iris, telephones)

    def _staff(self) -> Iterator[Columns]:
        staff = self.staff
        for rank, name in enumerate(RANKS):
            yield members(UB + name, pick(staff.iris, np.flatnonzero(self.rank == rank)))
        yield triples(UB + "worksFor", staff.iris, pick(self.departments, staff.department))
        # Full professors come first in their department, one of them is its head.
        heads = staff.rows(np.arange(len(self.departments)), self._any(self.staff_sizes[:, 0]))
        yield triples(UB + "headOf", pick(staff.iris, heads), self.departments)
        for degree in ("undergraduateDegreeFrom", "mastersDegreeFrom", "doctoralDegreeFrom"):
            yield triples(UB + degree, staff.iris, self._universities(len(staff)))
        professors = np.flatnonzero(self.rank != _LECTURER)
        fields = self.rng.integers(0, INTERESTS, len(professors))
        interests = numbered('"Research', fields, '"')
        yield triples(UB + "researchInterest", pick(staff.iris, professors), interests)
        for kind, teacher, courses in (
            ("Course", self.teacher, self.courses),
            ("GraduateCourse", self.graduate_teacher, self.graduate_courses),
        ):
            yield members(UB + kind, courses.iris)
            yield self._named(courses)
            yield triples(UB + "teacherOf", pick(staff.iris, teacher), courses.iris)

    def _studies(self) -> Iterator[Columns]:
        under, graduates = self.undergraduates, self.graduates
        for kind, group, courses, taken in (
            ("UndergraduateStudent", under, self.courses, TAKEN),
            ("GraduateStudent", graduates, self.graduate_courses, TAKEN_BY_GRADUATES),
        ):
            yield members(UB + kind, group.iris)
            departments = pick(self.departments, group.department)
            yield triples(UB + "memberOf", group.iris, departments)
            student, course = self._links(group, courses, taken)
            subjects, objects = pick(group.iris, student), pick(courses.iris, course)
            yield triples(UB + "takesCourse", subjects, objects)
        degrees = self._universities(len(graduates))
        yield triples(UB + "undergraduateDegreeFrom", graduates.iris, degrees)
        yield self._advisors(graduates, np.arange(len(graduates)))
        yield self._advisors(under, np.flatnonzero(self.rng.integers(0, ADVISED, len(under)) == 0))

    def _advisors(self, students: Group, advised: Numbers) -> Columns:
        """Each rank of professor advises as many as the others, as in the original."""
        department = students.department[advised]
        rank = self.rng.integers(0, _LECTURER, len(advised))
        first = np.cumsum(self.staff_sizes, axis=1) - self.staff_sizes
        number = first[department, rank] + self._any(self.staff_sizes[department, rank])
        advisors = pick(self.staff.iris, self.staff.rows(department, number))
        return triples(UB + "advisor", pick(students.iris, advised), advisors)

    def _assistants(self) -> Iterator[Columns]:
        """Some graduates teach, each another course, and some others do research."""
        graduates, courses = self.graduates, self.courses
        teaching, researching = (
            self.rng.integers(graduates.sizes // most, graduates.sizes // least + 1)
            for most, least in (TEACHING, RESEARCHING)
        )
        order, course_order = (shuffled(self.rng, g.sizes) for g in (graduates, courses))
        department, number = expand(teaching)
        teachers = pick(graduates.iris, order[graduates.rows(department, number)])
        taught = pick(courses.iris, course_order[courses.rows(department, number)])
        yield members(UB + "TeachingAssistant", teachers)
        yield triples(UB + "teachingAssistantOf", teachers, taught)
        department, number = expand(researching)
        others = order[graduates.rows(department, teaching[department] + number)]
        yield members(UB + "ResearchAssistant", pick(graduates.iris, others))

    def _papers(self) -> Iterator[Columns]:
        yield members(UB + "Publication", self.papers.iris)
        yield self._named(self.papers)
        authors = pick(self.staff.iris, self.author)
        yield triples(UB + "publicationAuthor", self.papers.iris, authors)
        graduate, paper = self._links(self.graduates, self.papers, CO_AUTHORED)
        subjects, objects = pick(self.papers.iris, paper), pick(self.graduates.iris, graduate)
        yield triples(UB + "publicationAuthor", subjects, objects)

    def _links(self, ones: Group, others: Group, bounds: Bounds) -> tuple[Numbers, Numbers]:
        """Each of one group with a few different ones of another, of the same department."""
        one, number = some(self.rng, others.sizes[ones.department], bounds)
        return one, others.rows(ones.department[one], number)

    def _any(self, sizes: Numbers) -> Numbers:
        return self.rng.integers(0, sizes)

    def _universities(self, count: int) -> pa.Array:
        numbers = self.rng.integers(0, DEGREE_UNIVERSITIES, count)
        return numbered("<http://www.University", numbers, ".edu>")

    def _named(self, group: Group) -> Columns:
        return triples(UB + "name", group.iris, join('"', group.names, '"'))


def university(number: int, seed: int = 0) -> Iterator[Columns]:
    """The triples of one university.

    >>> print(next(university(7)).text(), end="")  # doctest: +ELLIPSIS
    <http://www.University7.edu> <http://www.w3.org/...#type> <http://swat...#University> .
    """
    return University(number, seed).facts()


def other_universities(scale: int) -> Columns:
    """Those that degrees come from beside the first ones, which say themselves what they are.

    >>> len(other_universities(1)), other_universities(1_000).text()
    (999, '')
    """
    numbers = np.arange(min(scale, DEGREE_UNIVERSITIES), DEGREE_UNIVERSITIES)
    return members(UB + "University", numbered("<http://www.University", numbers, ".edu>"))


def facts(scale: int, seed: int = 0) -> Iterator[Columns]:
    """The triples of as many universities, one university after the other.

    >>> sum(len(columns) for columns in facts(1))
    101574
    """
    for number in range(scale):
        yield from university(number, seed)
    yield other_universities(scale)


def university_files(
    count: int,
    seed: int,
    draw: Callable[[int, int], Iterable[Columns]],
    others: Callable[[int], Iterable[Columns]],
    *,
    rules: str = "",
) -> Sequence[File]:
    """A file per university, one for what they share, the ontology, its rules and more rules."""
    return (
        *(File(f"University{k}.nt", partial(draw, k, seed)) for k in range(count)),
        File("universities.nt", partial(others, count)),
        File("univ-bench.nt", univ_bench.facts),
        File("rules.dl", text=univ_bench.rules() + rules),
    )


DATASET = Dataset(
    "lubm",
    "universities after LUBM's profile, with its ontology as triples and as rules",
    unit="universities, about 135,000 triples each",
    make=lambda scale, seed: university_files(
        int(scale), seed, university, lambda count: [other_universities(count)]
    ),
    least=1,
    most=100_000,
    whole=True,
)
