"""Thresholds: the sizes at which the code switches from one strategy to another.

Every layer declares its thresholds in one dataclass in its module `tuning`, and reads them as
attributes of its only instance at the point of decision. No threshold changes what is derived.
`corollary.testing` sets them for a block, so small cases reach every strategy.

A constant that a compiled loop contains (`reach_lists._SHORT`) is not a threshold here: it is part
of the machine code and cannot be set afterwards. Nor are sizes of buffers, durations, and the
bounds within which arithmetic is exact.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

UNLIMITED = 1 << 40  # larger than any size

T = TypeVar("T")


@dataclass(frozen=True)
class Threshold:
    """A threshold: its name, layer, default, unit, meaning, and the range of allowed values."""

    name: str
    layer: str
    default: int
    unit: str
    meaning: str
    minimum: int
    maximum: int


def threshold(
    default: int, unit: str, meaning: str, *, minimum: int = 0, maximum: int = UNLIMITED
) -> Any:
    """Declare a threshold as a field of a layer's dataclass."""
    metadata = {"unit": unit, "meaning": meaning, "minimum": minimum, "maximum": maximum}
    return field(default=default, metadata=metadata)


_layers: dict[str, Any] = {}  # by name: the instance that the layer reads


def register(layer: str, values: T) -> T:
    """Register the thresholds of a layer; returns the instance, which the layer reads."""
    _layers[layer] = values
    return values


def registered() -> dict[str, Threshold]:
    """The thresholds of all imported layers, by name."""
    found: dict[str, Threshold] = {}
    for layer, values in _layers.items():
        for declared in fields(values):
            if declared.name in found:
                raise ValueError(f"{declared.name} is declared by {layer} and another layer")
            default: Any = declared.default
            found[declared.name] = Threshold(declared.name, layer, default, **declared.metadata)
    return found


def current(name: str) -> int:
    """The current value of a threshold."""
    value: int = getattr(_layers[registered()[name].layer], name)
    return value


@contextmanager
def override(values: Mapping[str, int]) -> Iterator[None]:
    """Set thresholds by name, and restore them afterwards."""
    known = registered()
    for name, value in values.items():
        if name not in known:
            raise ValueError(f"unknown threshold {name!r}: choose from {', '.join(sorted(known))}")
        if not known[name].minimum <= int(value) <= known[name].maximum:
            limits = f"{known[name].minimum} to {known[name].maximum}"
            raise ValueError(f"{name} may be set to {limits}, not to {value}")
    before = {name: current(name) for name in values}
    try:
        for name, value in values.items():
            setattr(_layers[known[name].layer], name, value)
        yield
    finally:
        for name, value in before.items():
            setattr(_layers[known[name].layer], name, value)


@dataclass
class CoreThresholds:
    """Sizes of caches of the dictionary, and of interpreted loops."""

    interpreted_call_elements: int = threshold(
        1 << 14,
        "elements",
        "of the arrays of one call of a loop that is interpreted, not compiled",
        maximum=1 << 14,
    )

    remembered_terms_limit: int = threshold(
        1 << 20, "terms", "of a store, or fetched, that are cached as values"
    )
    remembered_texts_limit: int = threshold(1 << 19, "texts", "fetched texts that are cached")


tuning = register("core", CoreThresholds())
