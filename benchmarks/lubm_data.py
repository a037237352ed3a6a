"""LUBM's universities as numbers, drawn directly: no text, no dictionary.

The proportions are those of the Lehigh generator (UBA 1.7): departments of a university, staff of a
department, students per member of staff, and so on, each drawn between the same bounds as by
`corollary generate lubm`, but as ids at once, and not with the same numbers.
Ids look like those of encoded files: dense, a university's departments one after another, and all
that belongs to a department (people, each followed by their address, papers, courses, groups) next
to each other. Universities and the strings that departments share come first.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from corollary.core.dictionary import Ids
from corollary.generate.columns import Numbers
from corollary.generate.draw import Bounds, between, distinct, expand
from corollary.generate.lubm import (
    ADVISED,
    ASSISTANT,
    ASSOCIATE,
    CO_AUTHORED,
    COURSES,
    DEGREE_UNIVERSITIES,
    DEPARTMENTS,
    FULL,
    GRADUATES,
    GROUPS,
    INTERESTS,
    LECTURERS,
    PAPERS,
    RESEARCHING,
    TAKEN,
    TAKEN_BY_GRADUATES,
    TEACHING,
    UNDERGRADUATES,
)
from corollary.generate.univ_bench import UB
from corollary.lang.stratify import Predicate
from corollary.lang.syntax import IRI, TRIPLE, TYPE

Tables = dict[Predicate, Ids]

FACTS_PER_DEPARTMENT = 6_675  # follows from the bounds; LUBM(1) has 6,703

PARTS = ("department", "full", "associate", "assistant", "lecturer", "paper", "course",
         "graduate course", "undergraduate", "graduate", "group")  # fmt: skip
STAFF = PARTS[1:5]
PEOPLE = (*STAFF, "undergraduate", "graduate")
NAMES = 1_000  # how many different names each part has: people are numbered within a department


def property_(name: str) -> Predicate:
    """The predicate of one of the ontology's properties."""
    return Predicate(TRIPLE, IRI(UB + name))


def class_(name: str) -> Predicate:
    """The predicate of one of the ontology's classes."""
    return Predicate(TRIPLE, TYPE, IRI(UB + name))


@dataclass(frozen=True)
class Part:
    """The members of one part, department by department: ids, department, number in it."""

    ids: Numbers
    department: Numbers
    number: Numbers
    sizes: Numbers  # of each department

    def pick(self, department: Numbers, number: Numbers) -> Numbers:
        """The ids of the members with these numbers in these departments."""
        first: Numbers = np.cumsum(self.sizes) - self.sizes
        ids: Numbers = self.ids[first[department] + number]
        return ids


def generate(facts: int, seed: int = 0) -> Tables:
    """About this many facts, at least one department."""
    departments = max(1, round(facts / FACTS_PER_DEPARTMENT))
    return University(departments, np.random.default_rng(seed)).tables


class University:
    """All the universities that the departments need, drawn in one go."""

    def __init__(self, departments: int, rng: np.random.Generator) -> None:
        self.rng = rng
        self.departments = departments
        self.tables: Tables = {}
        self.draw_parts()
        self.add_organizations()
        self.add_people()
        self.add_staff()
        self.add_students()
        self.add_papers()
        self.add_universities()

    def between(self, bounds: Bounds, size: int) -> Numbers:
        return between(self.rng, bounds, size)

    def add(self, predicate: Predicate, *columns: Iterable[Numbers]) -> None:
        """Facts of a predicate from columns, each in one or more pieces."""
        pieces = [np.concatenate(list(column)) for column in columns]
        table = np.empty((len(pieces[0]), len(pieces)), np.uint32)
        for place, column in enumerate(pieces):
            table[:, place] = column
        self.tables[predicate] = table

    def draw_parts(self) -> None:
        """How many there are of everything, and which ids they get."""
        count, number = self.departments, {}
        sizes = {"department": np.ones(count, np.int64)}
        for part, bounds in zip(STAFF, (FULL, ASSOCIATE, ASSISTANT, LECTURERS), strict=True):
            sizes[part] = self.between(bounds, count)
        staff = np.sum([sizes[part] for part in STAFF], axis=0)
        owners = np.repeat(np.arange(count), staff)  # the department of each member of staff
        for part in ("course", "graduate course"):
            number[part] = self.between(COURSES, len(owners))
            sizes[part] = np.bincount(owners, number[part], count).astype(np.int64)
        sizes["paper"] = np.zeros(count, np.int64)
        for part, bounds in zip(STAFF, PAPERS, strict=True):
            number[part] = self.between(bounds, int(sizes[part].sum()))
            of = np.repeat(np.arange(count), sizes[part])
            sizes["paper"] += np.bincount(of, number[part], count).astype(np.int64)
        for part, bounds in (("undergraduate", UNDERGRADUATES), ("graduate", GRADUATES)):
            sizes[part] = np.bincount(owners, self.between(bounds, len(owners)), count).astype(
                np.int64
            )
        sizes["group"] = self.between(GROUPS, count)
        self.papers_of = {part: number[part] for part in STAFF}
        self.courses_of = {part: number[part] for part in ("course", "graduate course")}

        sizes_of_universities = self.between(DEPARTMENTS, count)  # more than are needed
        self.universities = int(np.searchsorted(np.cumsum(sizes_of_universities), count) + 1)
        self.university_of = np.repeat(np.arange(count), sizes_of_universities)[:count]
        all_universities = max(DEGREE_UNIVERSITIES, self.universities)
        self.name_of, first = {}, all_universities
        for part in (*PARTS, "university"):
            self.name_of[part] = first
            first += max(NAMES, all_universities)
        self.telephone, self.interests = first, first + 1
        first += 1 + INTERESTS

        # Per department one part after the other; people take two ids, the second for the address.
        widths = np.array([1 + (part in PEOPLE) for part in PARTS])
        spans = np.stack([sizes[part] for part in PARTS], axis=1) * widths
        starts = first + (np.cumsum(spans.ravel()) - spans.ravel()).reshape(spans.shape)
        self.parts = {}
        for place, part in enumerate(PARTS):
            department, number_ = expand(sizes[part])
            ids = starts[department, place] + number_ * widths[place]
            self.parts[part] = Part(ids, department, number_, sizes[part])

    def add_organizations(self) -> None:
        departments, groups = self.parts["department"], self.parts["group"]
        self.add(class_("Department"), [departments.ids])
        self.add(class_("ResearchGroup"), [groups.ids])
        self.add(
            property_("subOrganizationOf"),
            [departments.ids, groups.ids],
            [self.university_of, departments.ids[groups.department]],
        )

    def add_people(self) -> None:
        """What everyone has, and the names of everything."""
        people = [self.parts[part].ids for part in PEOPLE]
        self.add(property_("emailAddress"), people, [ids + 1 for ids in people])
        telephones = [np.full_like(ids, self.telephone) for ids in people]
        self.add(property_("telephone"), people, telephones)
        named = [part for part in PARTS if part != "group"]
        universities = np.arange(self.universities)
        self.add(
            property_("name"),
            [*(self.parts[part].ids for part in named), universities],
            [
                *(self.name_of[part] + self.parts[part].number % NAMES for part in named),
                self.name_of["university"] + universities,
            ],
        )

    def add_staff(self) -> None:
        departments = self.parts["department"].ids
        for part, name in zip(
            STAFF,
            ("FullProfessor", "AssociateProfessor", "AssistantProfessor", "Lecturer"),
            strict=True,
        ):
            self.add(class_(name), [self.parts[part].ids])
        staff = [self.parts[part] for part in STAFF]
        self.add(
            property_("worksFor"),
            [part.ids for part in staff],
            [departments[part.department] for part in staff],
        )
        full = self.parts["full"]
        heads = self.rng.integers(0, full.sizes)
        self.add(
            property_("headOf"), [full.pick(np.arange(self.departments), heads)], [departments]
        )
        professors = np.concatenate([part.ids for part in staff[:3]])
        interests = self.interests + self.rng.integers(0, INTERESTS, len(professors))
        self.add(property_("researchInterest"), [professors], [interests])

        # Members of staff in the order of departments, as the courses are.
        ids = np.sort(np.concatenate([part.ids for part in staff]))
        courses = {"course": "Course", "graduate course": "GraduateCourse"}
        for part, name in courses.items():
            self.add(class_(name), [self.parts[part].ids])
        self.add(
            property_("teacherOf"),
            [np.repeat(ids, self.courses_of[part]) for part in courses],
            [self.parts[part].ids for part in courses],
        )

    def add_students(self) -> None:
        departments = self.parts["department"].ids
        under, graduates = self.parts["undergraduate"], self.parts["graduate"]
        self.add(class_("UndergraduateStudent"), [under.ids])
        self.add(class_("GraduateStudent"), [graduates.ids])
        self.add(
            property_("memberOf"),
            [under.ids, graduates.ids],
            [departments[under.department], departments[graduates.department]],
        )
        taken = self.links(under, self.parts["course"], TAKEN)
        taken_by_graduates = self.links(
            graduates, self.parts["graduate course"], TAKEN_BY_GRADUATES
        )
        self.add(property_("takesCourse"), *zip(taken, taken_by_graduates, strict=True))

        advised = self.rng.random(len(under.ids)) < 1 / ADVISED
        students = np.concatenate([under.ids[advised], graduates.ids])
        of = np.concatenate([under.department[advised], graduates.department])
        # Professors of a department have ids two apart: three parts, one after the other.
        professors = np.sum([self.parts[part].sizes for part in STAFF[:3]], axis=0)
        first = self.parts["full"].pick(np.arange(self.departments), np.zeros_like(professors))
        advisors = first[of] + 2 * self.rng.integers(0, professors[of])
        self.add(property_("advisor"), [students], [advisors])

        teaching, course = self.assistants(TEACHING)
        self.add(class_("TeachingAssistant"), [teaching])
        self.add(property_("teachingAssistantOf"), [teaching], [course])
        researching, _ = self.assistants(RESEARCHING)
        self.add(class_("ResearchAssistant"), [researching])

    def assistants(self, one_in: tuple[int, int]) -> tuple[Numbers, Numbers]:
        """Some graduates of each department, and for each a course of their own."""
        graduates, courses = self.parts["graduate"], self.parts["course"]
        least, most = graduates.sizes // one_in[0], graduates.sizes // one_in[1]
        count = np.minimum(self.rng.integers(least, most + 1), courses.sizes)
        department, number = expand(count)
        chosen = (self.rng.integers(0, graduates.sizes)[department] + number) % graduates.sizes[
            department
        ]
        course = (self.rng.integers(0, courses.sizes)[department] + number) % courses.sizes[
            department
        ]
        return graduates.pick(department, chosen), courses.pick(department, course)

    def add_papers(self) -> None:
        papers, graduates = self.parts["paper"], self.parts["graduate"]
        self.add(class_("Publication"), [papers.ids])
        # The papers of a department belong to its staff, in the order of both.
        ids = np.concatenate([self.parts[part].ids for part in STAFF])
        number = np.concatenate([self.papers_of[part] for part in STAFF])
        order = np.argsort(ids)
        authors = np.repeat(ids[order], number[order])
        graduate, paper = self.links(graduates, papers, CO_AUTHORED)
        self.add(property_("publicationAuthor"), [papers.ids, paper], [authors, graduate])

    def add_universities(self) -> None:
        staff = np.concatenate([self.parts[part].ids for part in STAFF])
        everyone = np.concatenate([staff, self.parts["graduate"].ids])
        seen = np.zeros(max(DEGREE_UNIVERSITIES, self.universities), bool)
        seen[: self.universities] = True
        for name, holders in (
            ("undergraduateDegreeFrom", everyone),
            ("mastersDegreeFrom", staff),
            ("doctoralDegreeFrom", staff),
        ):
            granted_by = self.rng.integers(0, DEGREE_UNIVERSITIES, len(holders))
            seen[granted_by] = True
            self.add(property_(name), [holders], [granted_by])
        self.add(class_("University"), [np.flatnonzero(seen)])

    def links(self, ones: Part, others: Part, bounds: tuple[int, int]) -> tuple[Numbers, Numbers]:
        """Each of one part linked to a few different ones of another, of the same department."""
        count = self.between(bounds, len(ones.ids))
        size = others.sizes[ones.department]
        chosen = distinct(self.rng, size, bounds[1])
        wanted = np.arange(bounds[1]) < np.minimum(count, size)[:, None]
        rows, _ = np.nonzero(wanted)
        return ones.ids[rows], others.pick(ones.department[rows], chosen[wanted])
