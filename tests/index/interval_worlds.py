"""Large sets of subscriptions, and events of predicates on them with what must be found.

Constants come from the small pools of `strategies`, so predicates often meet, touch and fill a
bucket of a tree; most subscriptions test few attributes for few values, so that every structure
has to cut.  What must be found is decided by `witnesses`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np

from matchwood.lang.nodes import And, Between, Comparison, Expr, In, IsNull, Like, Or, predicates
from strategies import POOL, constant, pattern
from witnesses import Witnesses, is_general, plain, requirements

SCHEMA = {
    "i": "int",
    "j": "int",
    "f": "float",
    "n": "number",
    "b": "bool",
    "s": "string",
    "d": "date",
    "t": "timestamp",
}
NAMES = tuple(SCHEMA)
COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")


@dataclass
class IntervalWorld:
    """Subscriptions, satisfiable events, events that nothing satisfies, and what must be found."""

    subscriptions: list[Expr]
    events: list[Expr]
    contradictions: list[Expr]
    least: np.ndarray = field(repr=False)
    most: np.ndarray = field(repr=False)
    """bool[events, subscriptions]: what is surely found, and what may be found."""


def interval_world(seed: int, n_subscriptions: int, n_events: int) -> IntervalWorld:
    """A world of its own for every seed."""
    rng = Random(seed)
    heavy = NAMES[(seed + 1) % len(NAMES)]
    subscriptions = [
        _heavy(rng, heavy) if rng.random() < 0.3 else subscription(rng)
        for _ in range(n_subscriptions)
    ]
    drawn = [interval_event(rng, heavy) for _ in range(n_events)]
    return judged(subscriptions, subscriptions, drawn)


def judged(
    subscriptions: list[Expr], meanings: Sequence[Expr], drawn: Sequence[dict[str, Expr]]
) -> IntervalWorld:
    """Subscriptions and drawn events with what must be found; `meanings` have no context."""
    witnesses = _witnesses(meanings, drawn)
    allowed = [
        {name: witnesses[name].satisfying(plain(part)) for name, part in event.items()}
        for event in drawn
    ]
    good = [i for i, sets in enumerate(allowed) if all(sets.values())]
    bad = [i for i, sets in enumerate(allowed) if not all(sets.values())]
    least, most = _found(meanings, [drawn[i] for i in good], [allowed[i] for i in good], witnesses)
    return IntervalWorld(
        subscriptions,
        [_joined(And, list(drawn[i].values())) for i in good],
        [_joined(And, list(drawn[i].values())) for i in bad],
        least,
        most,
    )


# ── drawing ─────────────────────────────────────────────────────────────────────────────────────


def leaf(rng: Random, name: str, in_event: bool = False) -> Expr:
    """A predicate on an attribute; an event has no patterns that are no interval."""
    kind = SCHEMA[name]
    draw = rng.random()
    if draw < 0.06:
        return IsNull(name, negated=in_event or rng.random() < 0.5)
    if kind == "string" and draw < 0.3:
        while True:
            found = Like(name, pattern(rng), negated=rng.random() < 0.3)
            if not (in_event and is_general(found)):
                return found
    if draw < 0.5:
        values = [constant(rng, kind) for _ in range(rng.randint(1, 5))]
        if not in_event and rng.random() < 0.1:
            values.append(None)
        return In(name, tuple(values), negated=rng.random() < 0.4)
    if draw < 0.65:
        return Between(name, constant(rng, kind), constant(rng, kind), negated=rng.random() < 0.4)
    return Comparison(name, rng.choice(COMPARISONS), constant(rng, kind))


def conjunction(rng: Random) -> Expr:
    shape = rng.random()
    if shape < 0.4:  # few attributes, few values: what fills a bucket whole
        names = rng.sample(NAMES, rng.randint(1, 2))
        return _joined(And, [Comparison(name, "=", rng.choice(_few(name))) for name in names])
    if shape < 0.55:  # what `vcr` and `r_tree` take
        return _joined(And, [leaf(rng, "i"), leaf(rng, "f")])
    return _joined(And, [leaf(rng, rng.choice(NAMES)) for _ in range(rng.randint(1, 4))])


def _heavy(rng: Random, name: str) -> Expr:
    """One of three values of an attribute, with or without more: what overflows a leaf."""
    leaves = [Comparison(name, "=", rng.choice(_few(name)[:3]))]
    if rng.random() < 0.3:
        leaves.append(leaf(rng, rng.choice(NAMES)))
    return _joined(And, leaves)


def _few(name: str) -> Sequence[Any]:
    return range(8) if SCHEMA[name] == "int" else POOL[SCHEMA[name]][:8]


def subscription(rng: Random) -> Expr:
    if rng.random() < 0.9:
        return conjunction(rng)
    return Or((conjunction(rng), conjunction(rng)))


def interval_event(rng: Random, heavy: str) -> dict[str, Expr]:
    """By attribute what an event says about it; together a conjunction."""
    names = {*rng.sample(NAMES, rng.randint(1, 5)), *([heavy] if rng.random() < 0.5 else [])}
    return {name: _about(rng, name, name == heavy) for name in sorted(names)}


def _about(rng: Random, name: str, is_heavy: bool) -> Expr:
    shape = rng.random()
    if shape < 0.05:
        return IsNull(name)
    if shape < 0.1:
        return Or((IsNull(name), leaf(rng, name, in_event=True)))
    if shape < (0.5 if is_heavy else 0.2):
        few = _few(name)
        return rng.choice(
            (
                Comparison(name, "<>", rng.choice(few)),
                In(name, (rng.choice(few), rng.choice(few))),
                Between(name, rng.choice(few), rng.choice(few)),
            )
        )
    leaves = [leaf(rng, name, in_event=True) for _ in range(rng.choice((1, 1, 1, 2, 3)))]
    return _joined(rng.choice((And, Or)), leaves)


def _joined(kind: type[And] | type[Or], operands: list[Expr]) -> Expr:
    return operands[0] if len(operands) == 1 else kind(tuple(operands))


# ── what must be found ──────────────────────────────────────────────────────────────────────────


def _witnesses(
    subscriptions: Sequence[Expr], events: Sequence[dict[str, Expr]]
) -> dict[str, Witnesses]:
    leaves: dict[str, dict[Expr, None]] = {name: {} for name in SCHEMA}
    for expr in [*subscriptions, *(part for event in events for part in event.values())]:
        for each in predicates(expr):
            leaves[each.name][plain(each)] = None
    return {name: Witnesses(SCHEMA[name], leaves[name]) for name in SCHEMA}


def _lists_values(part: Expr) -> bool:
    """Whether an event's word on an attribute allows a list of values, not a range."""
    if isinstance(part, And):
        return any(_lists_values(each) for each in part.operands)
    if isinstance(part, Or):
        return all(_lists_values(each) for each in part.operands)
    if isinstance(part, Comparison):
        return part.op == "="
    if isinstance(part, Like):
        return not part.negated and not part.pattern.endswith("%")
    return isinstance(part, (In, IsNull)) and not part.negated


def _found(
    subscriptions: Sequence[Expr],
    events: Sequence[dict[str, Expr]],
    allowed: Sequence[dict[str, int]],
    witnesses: dict[str, Witnesses],
) -> tuple[np.ndarray, np.ndarray]:
    """Every subscription beside every event, by the sets of its requirements."""
    needs: dict[tuple[str, int, bool], int] = {}
    terms: list[list[int]] = []
    term_of: list[list[int]] = []
    for expr in subscriptions:
        mine = []
        for conj in expr.operands if isinstance(expr, Or) else (expr,):
            term = []
            for (name, apart), leaves in requirements(conj).items():
                wanted = witnesses[name].satisfying(plain(_joined(And, leaves)))
                need = name, wanted, apart is not None and is_general(apart)
                term.append(needs.setdefault(need, len(needs)))
            mine.append(len(terms))
            terms.append(term)
        term_of.append(mine)
    starts = np.cumsum([0, *[len(term) for term in terms]])[:-1]
    flat = np.concatenate([np.array(term) for term in terms])
    first = np.array([mine[0] for mine in term_of])
    last = np.array([mine[-1] for mine in term_of])
    answers = []
    for is_open in (False, True):
        rows = []
        for event, sets in zip(events, allowed, strict=True):
            holds = np.array(
                [
                    wanted & sets.get(name, 1) != 0
                    or (
                        is_open and is_general_ and name in event and not _lists_values(event[name])
                    )
                    for name, wanted, is_general_ in needs
                ]
            )
            by_term = np.logical_and.reduceat(holds[flat], starts)
            rows.append(by_term[first] | by_term[last])
        answers.append(np.array(rows))
    return answers[0], answers[1]
