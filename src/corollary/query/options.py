"""Constants of an IN, found by value instead of one by one."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from corollary.lang.syntax import IRI, BlankNode, Constant
from corollary.query.values import Fault, Value, as_float, equal, kind_of, number, single, string

_FEW = 4  # that are compared faster than looked up


class Options:
    """A set of constants that values are compared with by `=`.

    Equal values have equal keys: strings their text, numbers their nearest xsd:float, whatever
    their types. Where a literal has no known value, equality may be an error, and all are compared.

    >>> from decimal import Decimal
    >>> options = Options([IRI("a"), *range(10)])
    >>> options.include(IRI("a")), options.include(Decimal("7.0")), options.include("7")
    (True, True, False)
    """

    def __init__(self, constants: Sequence[Constant]) -> None:
        self._constants = list(dict.fromkeys(constants))
        self._by_key: dict[Hashable, list[Constant]] = {}
        self._unknown: list[Constant] = []  # without a known value
        if len(self._constants) > _FEW:
            for constant in self._constants:
                key = _key(constant)
                if key is None:
                    self._unknown.append(constant)
                else:
                    self._by_key.setdefault(key, []).append(constant)

    def include(self, value: Value) -> bool:
        """Whether one of the constants equals a value; a `Fault` if that is not known."""
        candidates = self._constants
        if len(candidates) > _FEW:
            key = _key(value)
            if key is not None:
                candidates = [*self._by_key.get(key, ()), *self._unknown]
        fault = False
        for candidate in candidates:
            try:
                if equal(value, candidate):
                    return True
            except Fault:
                fault = True
        if fault:
            raise Fault
        return False


def _key(value: Value) -> Hashable:
    if isinstance(value, IRI | BlankNode):
        return value
    kind = kind_of(value)
    if kind == "number":
        return kind, float(single(as_float(number(value))))
    if kind == "string":
        found, tag = string(value)
        return kind, found, (tag or "").lower()
    return kind
