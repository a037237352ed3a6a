"""Update scripts: facts and rules inserted and removed, commit by commit.

insert edge("a", "b"), edge("b", "c") ;
remove rule path(?x, ?z) :- path(?x, ?y), path(?y, ?z) . ;
commit ;
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from corollary.errors import Diagnostic, InvalidProgram, Source
from corollary.lang.declarations import validate_declarations
from corollary.lang.parser import Mistake, Parser
from corollary.lang.printer import Printer
from corollary.lang.program import Program
from corollary.lang.syntax import Atom, Rule
from corollary.lang.validate import validate


@dataclass(frozen=True)
class ScriptCommit:
    """The changes of one commit; of two statements about a fact or rule, the later counts."""

    inserted: tuple[Atom, ...] = ()
    deleted: tuple[Atom, ...] = ()
    added: tuple[Rule, ...] = ()
    removed: tuple[Rule, ...] = ()


def parse_script(text: str | Source, program: Program | None = None) -> tuple[ScriptCommit, ...]:
    """Parse a script for a program, whose prefixes it may use; reports all mistakes at once.

    >>> [commit] = parse_script("insert e(1, 2) ; delete e(2, 3) ; commit ;")
    >>> len(commit.inserted), len(commit.deleted)
    (1, 1)
    >>> parse_script("insert e(1, 2) ;")
    Traceback (most recent call last):
    ...
    corollary.errors.InvalidProgram: <text>:1:1: E310: this change is not committed...
    """
    source = text if isinstance(text, Source) else Source("<text>", text)
    program = Program() if program is None else program  # one without rules is empty
    parser = _ScriptParser(source, dict(program.prefixes))
    commits = tuple(parser.commits())
    rules = [rule for commit in commits for rule in (*commit.added, *commit.removed)]
    facts = [fact for commit in commits for fact in (*commit.inserted, *commit.deleted)]
    known = [*program.rules, *(Rule(fact, (), None, fact.span) for fact in program.facts)]
    written = [*rules, *(Rule(fact, (), None, fact.span) for fact in facts)]
    declared = [*program.declarations.relations.values()]
    problems = parser.problems + [
        problem
        for problem in (
            *validate([*known, *written], Printer(parser.prefixes), whole=False),
            *validate_declarations(declared, written),
        )
        if problem.span.source is source
    ]
    if problems:
        raise InvalidProgram(problems)
    return commits


class _ScriptParser(Parser):
    def commits(self) -> Iterator[ScriptCommit]:
        """All commits; mistakes go to `problems`."""
        facts: dict[Atom, bool] = {}
        rules: dict[Rule, bool] = {}
        uncommitted: Diagnostic | None = None
        while self._token.kind != "end":
            start = self._token
            try:
                done = self._change(facts, rules)
            except Mistake as mistake:
                self.problems.append(mistake.diagnostic)
                self._skip_change()
                continue
            if done:
                yield _commit(facts, rules)
                facts, rules, uncommitted = {}, {}, None
            elif (facts or rules) and uncommitted is None:
                span = self._span(start.start, self._end)
                uncommitted = Diagnostic(
                    "E310", "this change is not committed", span, "end the script with commit ;"
                )
        if uncommitted is not None:
            self.problems.append(uncommitted)

    def _change(self, facts: dict[Atom, bool], rules: dict[Rule, bool]) -> bool:
        """One statement; whether it is a commit."""
        token = self._token
        word = token.text.lower() if token.kind in ("word", "tag") else ""
        if word in ("@prefix", "prefix"):
            self._statement()
        elif word in ("insert", "delete"):
            self._advance()
            for atom in self._separated(self._atom):
                facts.pop(atom, None)
                facts[atom] = word == "insert"
            self._accept(".")
            self._expect(";", "',' or ';' after a fact")
        elif word in ("add", "remove"):
            self._advance()
            self._keyword("RULE")
            read = self.rules()
            if not read[0].body:
                self._fail(
                    "E101",
                    "expected a rule with a body, found a fact",
                    self._span(token.start, self._end),
                    "facts are changed by insert and delete",
                )
            for rule in read:
                rules.pop(rule, None)
                rules[rule] = word == "add"
            self._accept(";")
        elif word == "commit":
            self._advance()
            self._expect(";", "';' after commit")
            return True
        else:
            self._unexpected("insert, delete, add rule, remove rule or commit")
        return False

    def _skip_change(self) -> None:
        """Skip past the next semicolon."""
        while self._token.kind not in (";", "end"):
            self._advance()
        if self._token.kind != "end":
            self._advance()


def _commit(facts: dict[Atom, bool], rules: dict[Rule, bool]) -> ScriptCommit:
    return ScriptCommit(
        tuple(fact for fact, comes in facts.items() if comes),
        tuple(fact for fact, comes in facts.items() if not comes),
        tuple(rule for rule, comes in rules.items() if comes),
        tuple(rule for rule, comes in rules.items() if not comes),
    )
