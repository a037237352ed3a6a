"""`Program`: a frozen set of rules and facts, valid by construction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from html import escape
from pathlib import Path
from types import MappingProxyType
from typing import Any

from corollary.errors import InvalidInput, InvalidProgram, Source, require_type
from corollary.lang.declarations import NO_DECLARATIONS, Declarations, validate_declarations
from corollary.lang.parser import Parser
from corollary.lang.printer import Printer
from corollary.lang.stratify import Stratum, stratify
from corollary.lang.syntax import TRIPLE, Atom, Rule
from corollary.lang.validate import validate

_RULE = "a rule looks like: path(?x, ?y) :- edge(?x, ?y) ."
_SHOWN = 40  # lines in a notebook
PROGRAM_SUFFIXES = (".dl", ".srl")  # of the rule language, and of the SHACL Rules language


@dataclass(frozen=True, eq=False)
class Program:
    """Rules, facts and constraints; programs with the same ones are equal.

    A constraint is a rule with the head `false`. It derives nothing; if its body holds, the facts
    violate it (`algorithms.constraints`).

    Facts that belong to the rules, such as the axiomatic triples of RDFS, are `axioms`: they hold
    as long as the program states them, whatever data are deleted.

    `declarations` name and type the columns of relations, and name files. They do not count when
    programs are compared.

    >>> program = Program.parse("path(?x, ?y) :- edge(?x, ?y) . edge(1, 2) .")
    >>> print(program, end="")
    path(?x, ?y) :- edge(?x, ?y) .
    edge(1, 2) .
    >>> program == Program.parse("edge(1, 2) . path(?a, ?b) :- edge(?a, ?b) .")
    True
    """

    rules: tuple[Rule, ...] = ()
    facts: tuple[Atom, ...] = ()
    prefixes: Mapping[str, str] = field(default_factory=dict, repr=False)
    constraints: tuple[Rule, ...] = ()
    axioms: frozenset[Atom] = frozenset()
    declarations: Declarations = NO_DECLARATIONS

    @classmethod
    def parse(cls, text: str | Source, *, syntax: str = "dl") -> Program:
        """Parse a program; `InvalidProgram` reports all of its mistakes.

        `syntax` is `dl`, the rule language, or `srl`, the SHACL Rules language of the W3C.

        >>> Program.parse("p(?x) :- q(?y) .")
        Traceback (most recent call last):
        ...
        corollary.errors.InvalidProgram: <text>:1:3: E202: ?x stands in the head, but in no ...
        """
        require_type(text, (str, Source), "the text of a program", _RULE)
        source = text if isinstance(text, Source) else Source("<text>", text)
        if syntax != "dl":
            if syntax != "srl":
                raise InvalidInput("E314", f"unknown syntax {syntax!r}", "choose dl or srl")
            return cls._parse_srl(source, None, set())
        parser = Parser(source)
        statements = list(parser.statements())
        problems = parser.problems + validate(statements, Printer(parser.prefixes))
        problems += validate_declarations(parser.declarations, statements)
        if problems:
            raise InvalidProgram(problems)
        program = cls._of(statements, parser.prefixes)
        return replace(program, declarations=Declarations.of(parser.declarations))

    @classmethod
    def load(cls, path: str | Path) -> Program:
        """Parse a program file, which must have at least one rule or fact.

        A `.srl` file is in the SHACL Rules language; all others are in the rule language.
        """
        require_type(path, (str, Path), "the path of a .dl or .srl file")
        program = cls._load(Path(path), set())
        if not len(program) and not program.declarations:
            raise InvalidInput(
                "E303",
                f"{path} holds no rule and no fact",
                _RULE,
                file=str(path),
            )
        return program

    @classmethod
    def _load(cls, path: Path, loaded: set[Path]) -> Program:
        source = Source.read(path)
        loaded.add(path.resolve())
        if path.suffix == ".srl":
            return cls._parse_srl(source, path, loaded)
        return cls.parse(source)

    @classmethod
    def _parse_srl(cls, source: Source, path: Path | None, loaded: set[Path]) -> Program:
        """Parse a document of the SHACL Rules language, with the files that it imports."""
        from corollary.lang.srl import SrlParser  # few programs are written in this language

        parser = SrlParser(source)
        if path is not None:
            parser.base = path.resolve().as_uri()
        statements = list(parser.statements())
        # A pattern of the data that rules derive (E126) would also be reported as a cycle.
        whole = all(problem.code != "E126" for problem in parser.problems)
        problems = parser.problems + validate(statements, Printer(parser.prefixes), whole=whole)
        if problems:
            raise InvalidProgram(problems)
        program = cls._of(statements, parser.prefixes)
        for file in parser.imports:
            if file.resolve() not in loaded:
                program = program | cls._load(file, loaded)
        return program

    @classmethod
    def of(
        cls,
        rules: Iterable[Rule] = (),
        facts: Iterable[Atom] = (),
        prefixes: Mapping[str, str] | None = None,
    ) -> Program:
        """Create and validate a program from values; `rules` may include constraints."""
        statements = [*rules, *(Rule(fact, (), None, fact.span) for fact in facts)]
        problems = validate(statements, Printer(prefixes))
        if problems:
            raise InvalidProgram(problems)
        return cls._of(statements, prefixes or {})

    @classmethod
    def _of(cls, statements: Iterable[Rule], prefixes: Mapping[str, str]) -> Program:
        rules: dict[Rule, None] = {}
        facts: dict[Atom, None] = {}
        constraints: dict[Rule, None] = {}
        for rule in statements:
            if not rule.body:
                facts.setdefault(rule.head)
            else:
                (constraints if rule.is_constraint else rules).setdefault(rule)
        return cls(tuple(rules), tuple(facts), MappingProxyType(dict(prefixes)), tuple(constraints))

    def __eq__(self, other: object) -> bool:
        return self._sets == other._sets if isinstance(other, Program) else NotImplemented

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle and copy the prefixes as a dictionary."""
        values = vars(self) | {"prefixes": dict(self.prefixes)}
        return type(self), tuple(values[one.name] for one in fields(self))

    def __hash__(self) -> int:
        return hash(self._sets)

    def rules_not_in(self, other: Program) -> tuple[Rule, ...]:
        """The rules and constraints that another program lacks.

        >>> program = Program.parse("q(?x) :- p(?x) . false :- q(1) .")
        >>> [rule.is_constraint for rule in program.rules_not_in(Program.parse("q(?x) :- p(?x) ."))]
        [True]
        """
        return tuple(rule for rule in (*self.rules, *self.constraints) if rule not in other)

    @cached_property
    def _sets(self) -> tuple[frozenset[Rule], frozenset[Atom]]:
        return frozenset((*self.rules, *self.constraints)), frozenset(self.facts)

    def __str__(self) -> str:
        rules = (*self.rules, *self.constraints)
        text = Printer(self.prefixes).program(rules, self.facts, self.prefixes)
        return f"{self.declarations}{text}"

    def _repr_html_(self) -> str:
        """The beginning of the text, for notebooks."""
        lines = str(self).splitlines()
        more = f"\n… {len(lines) - _SHOWN:,} more lines" if len(lines) > _SHOWN else ""
        return f"<pre>{escape(chr(10).join(lines[:_SHOWN]))}{more}</pre>"

    def __len__(self) -> int:
        """The number of rules, facts and constraints."""
        return len(self.rules) + len(self.facts) + len(self.constraints)

    def __bool__(self) -> bool:
        """Whether the program says anything; it may only declare relations.

        >>> program = Program.parse("@relation age(who: string, years: integer) .")
        >>> len(program), bool(program), bool(Program())
        (0, True, False)
        """
        return len(self) > 0 or bool(self.declarations)

    def __contains__(self, item: Rule | Atom) -> bool:
        return item in self._sets[isinstance(item, Atom)]

    def __or__(self, other: Program) -> Program:
        """The rules and facts of both programs."""
        program = Program.of(
            dict.fromkeys((*self.rules, *self.constraints, *other.rules, *other.constraints)),
            (*self.facts, *other.facts),
            {**self.prefixes, **other.prefixes},
        )
        declarations = self.declarations | other.declarations
        return replace(program, axioms=self.axioms | other.axioms, declarations=declarations)

    def __sub__(self, other: Program) -> Program:
        """The rules and facts that the other program lacks."""
        program = Program.of(
            (rule for rule in (*self.rules, *self.constraints) if rule not in other),
            (fact for fact in self.facts if fact not in other),
            self.prefixes,
        )
        axioms = self.axioms & frozenset(program.facts)
        return replace(program, axioms=axioms, declarations=self.declarations)

    def without_facts(self) -> Program:
        """The program without its facts."""
        return replace(self, facts=(), axioms=frozenset())

    def with_axioms(self, axioms: Iterable[Atom] | None = None) -> Program:
        """The program with these facts as axioms, by default all of its facts.

        >>> program = Program.parse("p(?x) :- q(?x) . q(1) .")
        >>> len(program.axioms), len(program.with_axioms().axioms)
        (0, 1)
        """
        stated = self.facts if axioms is None else tuple(axioms)
        return replace(self, facts=stated, axioms=frozenset(stated))

    def added(self, *rules: Rule) -> Program:
        """The program with more rules.

        >>> rule = Program.parse("p(?x) :- q(?x) .").rules[0]
        >>> len(Program().added(rule).added(rule).strata)
        1
        """
        new = tuple(dict.fromkeys(rule for rule in rules if rule not in self))
        if not new:
            return self
        if not self._may_add(new):
            return self | Program.of(new)
        # The existing rules are valid and remain so.
        own = tuple(rule for rule in new if not rule.is_constraint)
        constraints = tuple(rule for rule in new if rule.is_constraint)
        program = replace(self, rules=self.rules + own, constraints=self.constraints + constraints)
        arities = {
            atom.relation: len(atom.terms)
            for rule in new
            for atom in _atoms_of(rule)
            if atom.relation != TRIPLE
        }
        return program._cache(
            _sets=(self._sets[0].union(new), self._sets[1]),
            _positive=True,
            arities={**self.arities, **arities},
        )

    def _may_add(self, rules: tuple[Rule, ...]) -> bool:
        """Whether rules are valid on their own and consistent with the arities of the program."""
        return (
            self._positive
            and all(rule.body and _is_positive(rule) for rule in rules)
            and not validate(rules, whole=False)
            and all(
                self.arities.get(atom.relation, len(atom.terms)) == len(atom.terms)
                for rule in rules
                for atom in _atoms_of(rule)
                if atom.relation != TRIPLE
            )
        )

    @cached_property
    def _positive(self) -> bool:
        """Whether no rule negates, aggregates or has an extremum: stratification cannot fail."""
        return all(map(_is_positive, self.rules))

    def _cache(self, **properties: object) -> Program:
        """Set cached properties whose values are already known."""
        self.__dict__.update(properties)
        return self

    def removed(self, *rules: Rule) -> Program:
        """The program without these rules; raises if it lacks one."""
        for rule in rules:
            if rule not in self:
                text = Printer(self.prefixes).rule(rule)
                raise InvalidInput("E307", f"the program has no rule {text}")
        # The remaining rules are valid: they are still safe, and have fewer dependencies.
        removed = frozenset(rules)
        remaining = tuple(rule for rule in self.rules if rule not in removed)
        constraints = tuple(rule for rule in self.constraints if rule not in removed)
        if not removed:
            return self
        if any(rule.extremum is not None for rule in removed):
            validated = Program.of((*remaining, *constraints), self.facts, self.prefixes)
            return replace(validated, axioms=self.axioms, declarations=self.declarations)
        program = replace(self, rules=remaining, constraints=constraints)
        if self._positive:
            program._cache(_positive=True)
        if all(atom.relation == TRIPLE for rule in removed for atom in _atoms_of(rule)):
            program._cache(arities=self.arities)
        return program._cache(_sets=(self._sets[0] - removed, self._sets[1]))

    @cached_property
    def strata(self) -> tuple[Stratum, ...]:
        """The rules in strata, dependencies first."""
        return stratify(self.rules)

    @cached_property
    def arities(self) -> Mapping[str, int]:
        """The arities of the plain relations."""
        used = {atom.relation: len(atom.terms) for atom in self._atoms() if atom.relation != TRIPLE}
        return {**self.declarations.arities(), **used}

    @cached_property
    def has_triples(self) -> bool:
        """Whether a rule or fact contains a triple."""
        return any(atom.relation == TRIPLE for atom in self._atoms())

    def _atoms(self) -> Iterator[Atom]:
        yield from self.facts
        for rule in (*self.rules, *self.constraints):
            yield from _atoms_of(rule)

    @cached_property
    def derived(self) -> frozenset[str]:
        """The plain relations that rules derive."""
        return frozenset(rule.head.relation for rule in self.rules) - {TRIPLE}


def _is_positive(rule: Rule) -> bool:
    return rule.extremum is None and all(reading == "positive" for _, reading in rule.atoms())


def _atoms_of(rule: Rule) -> Iterator[Atom]:
    if not rule.is_constraint:
        yield rule.head
    yield from (atom for atom, _ in rule.atoms())
