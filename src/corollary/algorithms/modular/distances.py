"""Close D(x, z, MIN(d + w)) :- D(x, y, d), E(y, z, w) by Dijkstra's algorithm.

Idea: where the only recursive rule of a minimum adds a number to its value, the rest of its body is
a graph. The numbers are read in bulk, and distances become terms in bulk; in between are 64-bit
integers (of scaled decimals) or doubles, one search for each group of other arguments.

What does not fit returns None and is closed in rounds: numbers of several types, numbers of more
than 15 digits, negative ones, and graphs that an engine on a cluster holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from corollary.core.compile import CompiledRule, compile_rule, open_terms
from corollary.core.dictionary import Dictionary, Ids
from corollary.core.engine import Engine, F
from corollary.core.shortest import Search, graph
from corollary.lang.stratify import Predicate
from corollary.lang.syntax import (
    XSD,
    Atom,
    Bind,
    Expression,
    Operation,
    Rule,
    Variable,
    expression_variables,
)
from corollary.lang.xsd import DECIMAL, DOUBLE, INTEGER, NUMERIC, double_text

Array = npt.NDArray[Any]

_TYPES = (INTEGER, DECIMAL, DOUBLE)  # sums of one type and an earlier one have this type
_MOST_DIGITS = 15  # doubles distinguish all decimals of this many digits
_LIMIT = 2.0**62
_PATTERN = (
    r'^"(?P<text>[+-]?[0-9]*\.?[0-9]*(?:[eE][+-]?[0-9]+)?)"\^\^'
    rf"<{XSD}(?P<type>integer|decimal|double)>$"
)
# Terms of other types, such as xsd:int, are left to the rounds.
_NUMBERS = rf'"\^\^<(?:{"|".join(sorted(NUMERIC))})>$'


@dataclass(frozen=True, eq=False)
class Steps:
    """The rule as steps(y, z, w) :- E(y, z, w): the node at `place` of a group becomes another."""

    rule: CompiledRule
    place: int
    direct: tuple[Predicate, tuple[int, ...]] | None  # the columns of a relation that are the steps

    def columns(self, engine: Engine[F], facts: F) -> Sequence[Ids]:
        """The steps, with the ids of their weights; nothing if there are none."""
        if self.direct is not None:
            predicate, order = self.direct
            columns = facts.columns(predicate)
            return [columns[at] for at in order] if columns else ()
        return engine.derive([self.rule], facts).facts.columns(self.rule.head.predicate)


def steps_of(
    rule: Rule, own: Atom, value: Variable, place: int, dictionary: Dictionary
) -> Steps | None:
    """The steps of a recursive rule with one extremal atom, if it adds to that atom's value.

    `place` is that of the value among the open terms of the atom, and of the head.
    """
    weight = _weight(rule, value)
    before, after = (_group(atom, place) for atom in (own, rule.head))
    moved = [at for at, (one, two) in enumerate(zip(before, after, strict=True)) if one != two]
    if weight is None or len(moved) != 1:
        return None
    start, end = before[moved[0]], after[moved[0]]
    others = {term for at, term in enumerate(before) if at != moved[0]}
    rest = tuple(part for part in rule.body if part is not own and not _computes(part, rule, value))
    read = {v for part in rest for v in _variables(part)}
    if (
        not all(isinstance(term, Variable) for term in before)
        or not isinstance(end, Variable)
        or len(set(before)) < len(before)
        or start not in read
        or end in before
        or others & read
        or value in read
    ):
        return None
    assert isinstance(start, Variable), "checked before"
    increment = Variable("step")
    head = Atom("STEPS", (start, end, increment))
    body = (*rest, Bind(weight, increment))
    compiled = compile_rule(Rule(head, body), dictionary)
    return Steps(compiled, moved[0], _direct(rest, start, end, weight))


def _direct(
    rest: Sequence[object], start: Variable, end: Variable, weight: Expression
) -> tuple[Predicate, tuple[int, ...]] | None:
    if len(rest) != 1 or not isinstance(rest[0], Atom) or not isinstance(weight, Variable):
        return None
    atom = rest[0]
    predicate = Predicate(atom.relation)
    terms = open_terms(atom, predicate)
    if set(terms) != {start, end, weight} or len(terms) != 3 or len(set(terms)) != 3:
        return None
    return predicate, tuple(terms.index(v) for v in (start, end, weight))


def _group(atom: Atom, place: int) -> tuple[object, ...]:
    terms = atom.terms[:1] + atom.terms[2:] if atom.relation == "[]" else atom.terms
    return (*terms[:place], *terms[place + 1 :])


def _variables(part: object) -> set[Variable]:
    atom = getattr(part, "atom", part)
    return set(atom.variables())  # type: ignore[attr-defined]


def _moving(rule: Rule, value: Variable) -> set[Variable]:
    moving = {value}
    for bind in rule.binds:
        if moving & bind.inputs():
            moving.add(bind.variable)
    return moving


def _computes(part: object, rule: Rule, value: Variable) -> bool:
    return isinstance(part, Bind) and part.variable in _moving(rule, value)


def _weight(rule: Rule, value: Variable) -> Expression | None:
    """The expression that the head adds to the value."""
    moving = _moving(rule, value)
    binds = [bind for bind in rule.binds if bind.variable in moving]
    if not binds or rule.extremum is not binds[-1] or len(binds) > 2:
        return None
    expression = binds[0].expression
    if len(binds) == 2 and binds[1].expression != binds[0].variable:
        return None
    if not isinstance(expression, Operation) or expression.operator != "+":
        return None
    if len(expression.arguments) != 2 or value not in expression.arguments:
        return None
    [other] = [a for a in expression.arguments if a != value] or [value]
    return None if moving & set(expression_variables(other)) else other


def distances(
    steps: Steps, engine: Engine[F], facts: F, seeds: Ids, place: int
) -> tuple[Ids, Ids] | None:
    """The rows better than all `seeds` of their groups, and these seeds.

    None if rounds must find them.
    """
    dictionary = engine.dictionary
    if dictionary.partial or not len(seeds):
        return None
    columns = steps.columns(engine, facts)
    if not columns:
        return seeds[:0], seeds[:0]
    starts, ends, weight_ids = columns
    read = _numbers(weight_ids, seeds[:, place], dictionary)
    if read is None:
        return None
    weights, is_weight, values, scale, datatype = read
    if not is_weight.all():
        starts, ends, weights = starts[is_weight], ends[is_weight], weights[is_weight]
    if len(weights) and weights.min() < 0:
        return None
    groups = np.delete(seeds, place, axis=1)
    nodes = np.zeros(len(dictionary), np.int64)
    for column in (starts, ends, groups[:, steps.place]):
        nodes[column] = 1
    terms = np.flatnonzero(nodes)
    nodes[terms] = np.arange(len(terms))
    search = Search(graph(len(terms), nodes[starts], nodes[ends], weights))
    is_new = np.zeros(len(terms), bool)
    beaten: list[Ids] = []
    others = np.delete(groups, steps.place, axis=1)
    order = np.lexsort(others.T) if others.shape[1] else np.arange(len(seeds))
    changes = (others[order][1:] != others[order][:-1]).any(axis=1)
    found: list[Ids] = []
    sums: list[Array] = []
    for part in np.split(order, np.flatnonzero(changes) + 1):
        first = nodes[groups[part, steps.place]]
        reached, lengths, new = search.run(first, values[part])
        is_new[reached] = new
        beaten.append(seeds[part[is_new[first]]])
        table = np.empty((int(new.sum()), groups.shape[1]), np.uint32)
        table[:] = groups[part[0]]
        table[:, steps.place] = terms[reached[new]]
        found.append(table)
        sums.append(lengths[new])
    ids = _terms(np.concatenate(sums), scale, datatype, dictionary)
    table = np.concatenate(found)
    return np.insert(table, place, ids, axis=1), np.concatenate(beaten)


def _numbers(
    weights: Ids, seeds: Ids, dictionary: Dictionary
) -> tuple[Array, npt.NDArray[np.bool_], Array, int, str] | None:
    """Weights, which of them are numbers, seeds, the power of ten of both, and the type of sums."""
    import pyarrow as pa
    import pyarrow.compute as pc

    parts = []
    for ids in (weights, seeds):
        known = np.zeros(len(dictionary), bool)
        known[ids] = True
        distinct = np.flatnonzero(known)
        place = np.zeros(len(dictionary), np.int64)
        place[distinct] = np.arange(len(distinct))
        texts = dictionary.texts(distinct)
        fields = pc.extract_regex(texts, _PATTERN)
        valid = pc.is_valid(fields).to_numpy(zero_copy_only=False)
        if pc.any(pc.match_substring_regex(texts.filter(pa.array(~valid)), _NUMBERS)).as_py():
            return None
        lexical = pc.struct_field(fields, "text").filter(pa.array(valid))
        if len(lexical) and pc.max(pc.utf8_length(lexical)).as_py() > _MOST_DIGITS:
            return None
        types = {
            XSD + t for t in pc.unique(pc.struct_field(fields, "type")).drop_null().to_pylist()
        }
        digits = 0
        if DECIMAL in types:
            dot = pc.find_substring(lexical, ".")
            length = pc.subtract(pc.utf8_length(lexical), pc.add(dot, 1))
            digits = pc.max(pc.if_else(pc.less(dot, 0), 0, length)).as_py()
        try:
            numbers = np.zeros(len(distinct))
            numbers[valid] = lexical.cast(pa.float64()).to_numpy(zero_copy_only=False)
        except pa.ArrowInvalid:  # a malformed number
            return None
        parts.append((place[ids], valid, numbers, types, digits))
    (weight_at, weight_valid, weight_numbers, weight_types, weight_digits), seed = parts
    seed_at, seed_valid, seed_numbers, seed_types, seed_digits = seed
    if len(weight_types) != 1 or not seed_valid.all():
        return None
    [datatype] = weight_types
    if max(map(_TYPES.index, seed_types), default=0) > _TYPES.index(datatype):
        return None
    digits = 0 if datatype == DOUBLE else max(weight_digits, seed_digits)
    convert = np.float64 if datatype == DOUBLE else np.int64
    arrays = []
    for numbers in (weight_numbers, seed_numbers):
        scaled = numbers * 10.0**digits
        if datatype != DOUBLE and len(scaled) and np.abs(scaled).max() >= 10.0**_MOST_DIGITS:
            return None
        arrays.append((scaled if datatype == DOUBLE else np.rint(scaled)).astype(convert))
    if datatype != DOUBLE:
        most = [float(np.abs(a).max()) if len(a) else 0.0 for a in arrays]
        if most[0] * len(dictionary) + most[1] >= _LIMIT:
            return None
    return (
        arrays[0][weight_at],
        weight_valid[weight_at],
        arrays[1][seed_at],
        digits,
        datatype,
    )


def _terms(sums: Array, digits: int, datatype: str, dictionary: Dictionary) -> Ids:
    """The ids of the canonical terms of numbers."""
    import pyarrow as pa
    import pyarrow.compute as pc

    distinct, place = np.unique(sums, return_inverse=True)
    if datatype == INTEGER:
        texts = pa.array(distinct).cast(pa.large_string())
    elif datatype == DOUBLE:
        texts = pa.array([double_text(value) for value in distinct.tolist()], pa.large_string())
    else:
        unit = 10**digits
        found = []
        for value in distinct.tolist():
            whole, fraction = divmod(abs(value), unit)
            figures = str(fraction).zfill(digits).rstrip("0") if fraction else ""
            found.append(f"{'-' if value < 0 else ''}{whole}.{figures or '0'}")
        texts = pa.array(found, pa.large_string())
    text = pa.scalar
    quoted = pc.binary_join_element_wise(
        text('"', pa.large_string()),
        texts,
        text(f'"^^<{datatype}>', pa.large_string()),
        text("", pa.large_string()),
    )
    return dictionary.encode_texts(quoted)[place]
