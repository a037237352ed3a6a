"""Generated streams: a network whose links fail, and a policy whose rules change."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from random import Random

from benchmarks.evolve.streams import Commit

Generator = Callable[[int, Random], Iterator[Commit]]

STEPS = 20
EXPECTED = Path(__file__).with_name("expected.json")


def _triple(subject: str, property_: str, object_: str) -> str:
    return f"<urn:{subject}> <urn:{property_}> <urn:{object_}> ."


_REACHES = (
    "[?x, <urn:reaches>, ?y] :- [?x, <urn:link>, ?y] .",
    "[?x, <urn:reaches>, ?z] :- [?x, <urn:reaches>, ?y], [?y, <urn:link>, ?z] .",
)
_SYMMETRIC = "[?y, <urn:link>, ?x] :- [?x, <urn:link>, ?y] ."


def network(scale: int, random: Random) -> Iterator[Commit]:
    """Regions of routers; links fail and return, and links become symmetric for a while."""
    links = set()
    for region in range(6 * scale):
        for router in range(1, 40):
            other = random.randrange(router)
            links.add(_triple(f"r{region}-{other}", "link", f"r{region}-{router}"))
            if random.random() < 0.3:
                far = random.randrange(40)
                links.add(_triple(f"r{region}-{router}", "link", f"r{region}-{far}"))
    yield Commit(sorted(links), add_rules=_REACHES)
    down: set[str] = set()
    for step in range(1, STEPS):
        failing = set(random.sample(sorted(links), random.randrange(1, 2 + 3 * scale)))
        returning = {link for link in sorted(down) if random.random() < 0.5}
        links, down = (links - failing) | returning, (down - returning) | failing
        yield Commit(
            sorted(returning),
            sorted(failing),
            add_rules=[_SYMMETRIC] if step % 8 == 3 else (),
            remove_rules=[_SYMMETRIC] if step % 8 == 5 else (),
        )


_POLICY = (
    "[?r, <urn:above>, ?t] :- [?r, <urn:above>, ?s], [?s, <urn:above>, ?t] .",
    "[?r, <urn:may>, ?p] :- [?r, <urn:above>, ?s], [?s, <urn:may>, ?p] .",
    "[?u, <urn:may>, ?p] :- [?u, <urn:has>, ?r], [?r, <urn:may>, ?p] .",
)
_OPTIONAL = (
    "[?u, <urn:has>, ?r] :- [?v, <urn:delegates>, ?u], [?v, <urn:has>, ?r] .",
    "[?u, <urn:sees>, ?d] :- [?u, <urn:may>, ?p], [?p, <urn:on>, ?d] .",
    "[?r, <urn:may>, ?q] :- [?r, <urn:may>, ?p], [?p, <urn:implies>, ?q] .",
)


def policy(scale: int, random: Random) -> Iterator[Commit]:
    """Roles, users and permissions; every other commit adds or removes a rule."""
    roles, users, permissions = 40 * scale, 300 * scale, 60 * scale

    def edge(kind: str) -> str:
        user, role = f"u{random.randrange(users)}", f"r{random.randrange(roles)}"
        permission, other = (f"p{random.randrange(permissions)}" for _ in range(2))
        subject, object_ = {
            "has": (user, role),
            "may": (role, permission),
            "delegates": (user, f"u{random.randrange(users)}"),
            "implies": (permission, other),
            "on": (permission, f"d{random.randrange(30)}"),
        }[kind]
        return _triple(subject, kind, object_)

    kinds = ("has", "may", "delegates", "implies", "on")
    facts = {_triple(f"r{random.randrange(n)}", "above", f"r{n}") for n in range(1, roles)}
    facts |= {edge(kind) for kind in kinds for _ in range(users if kind == "has" else roles)}
    yield Commit(sorted(facts), add_rules=_POLICY)
    active: set[str] = set()
    for step in range(1, STEPS):
        rule = random.choice(_OPTIONAL) if step % 2 else None
        lost = set(random.sample(sorted(facts), random.randrange(1, 6)))
        new = {edge(random.choice(kinds)) for _ in range(random.randrange(1, 6))} - facts
        facts = (facts - lost) | new
        yield Commit(
            sorted(new),
            sorted(lost),
            add_rules=[rule] if rule and rule not in active else (),
            remove_rules=[rule] if rule and rule in active else (),
        )
        active ^= {rule} if rule else set()


GENERATORS: Mapping[str, Generator] = {"network": network, "policy": policy}


def commits(name: str, scale: int = 1, seed: int = 0) -> Iterator[Commit]:
    """The commits of a generated stream, with the expected states where they are recorded."""
    states = json.loads(EXPECTED.read_text(encoding="utf-8")) if EXPECTED.exists() else {}
    known = states.get(name, []) if (scale, seed) == (1, 0) else []
    for number, commit in enumerate(GENERATORS[name](scale, Random(seed))):
        if number < len(known):
            count, digest = known[number]
            commit = replace(commit, count=count, hash=digest)
        yield commit
