"""Closures of graphs, naively."""

from __future__ import annotations


def closure(edges: list[list[int]]) -> set[tuple[int, int]]:
    """The pairs that edges connect, naively."""
    reached = {(a, b) for a, b in edges}
    while True:
        size = len(reached)
        ends: dict[int, list[int]] = {}
        for a, b in reached:
            ends.setdefault(a, []).append(b)
        reached |= {(a, c) for a, b in edges for c in ends.get(b, ())}
        if len(reached) == size:
            return reached
