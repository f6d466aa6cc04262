"""Where an engine and the naive evaluator disagree, pair by pair of expression and event.

The engine reads the printed text; the naive evaluator the tree that the parser makes of it.  So one
run judges printer, parser and semantics together, on all three truth values.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any, Protocol

from hypothesis import Phase, given, settings

from matchwood.lang.nodes import Expr, Predicate, predicates
from matchwood.lang.parser import parse
from matchwood.lang.printer import to_text
from naive import Truth, evaluate
from oracle.columns import as_columns, column_events
from oracle.shared import is_shared
from strategies import Event, Schema, expression, schema, seeds

LONG = os.environ.get("MATCHWOOD_PROFILE") == "long"
N_EXPRESSIONS, N_EVENTS = 60, 80
MAX_LEAVES = 9
SHOWN = 5


class Engine(Protocol):
    """An SQL engine that judges expressions."""

    name: str

    def takes(self, columns: Schema) -> bool:
        """Can one table have these columns?"""

    def truths(self, columns: Schema, events: list[Event], exprs: list[Expr]) -> list[list[Truth]]:
        """For every expression, its truth for every event."""


@dataclass
class Verdict:
    """How many pairs were compared, by truth value, and which differed."""

    pairs: Counter[Truth] = field(default_factory=Counter)
    differences: list[str] = field(default_factory=list)

    def add(self, text: str, event: dict[str, Any], expected: Truth, found: Truth) -> None:
        self.pairs[expected] += 1
        if expected is not found:
            self.differences.append(f"{text}\n  on {event}: expected {expected}, found {found}")

    def report(self) -> str:
        """The shortest differences: the easiest to understand."""
        shortest = sorted(self.differences, key=len)[:SHOWN]
        return f"{len(self.differences)} of {self.pairs.total()} differ\n" + "\n".join(shortest)


def table(
    seed: int,
    takes: Callable[[Schema], bool] = lambda _: True,
    is_allowed: Callable[[Predicate, Schema], bool] = is_shared,
) -> tuple[Schema, list[Expr], list[Event]]:
    """Columns, expressions and events from one seed; by default in the shared language."""
    rng = Random(seed)
    attributes = schema(rng)
    while not takes(attributes):
        attributes = schema(rng)
    columns = as_columns(attributes, number=rng.choice(("int", "float")))
    exprs = [
        # constants as for `number`, values as for the column that stands for it
        expression(rng, attributes, rng.randint(1, MAX_LEAVES), lambda p: is_allowed(p, columns))
        for _ in range(N_EXPRESSIONS)
    ]
    return columns, exprs, column_events(rng, columns, N_EVENTS)


def judge(engine: Engine, seed: int, verdict: Verdict) -> None:
    """Compare one table of events under one set of expressions."""
    columns, exprs, events = table(seed, engine.takes)
    for expr, truths in zip(exprs, engine.truths(columns, events, exprs), strict=True):
        text = to_text(expr)
        reread = parse(text)
        names = {predicate.name for predicate in predicates(expr)}
        for event, found in zip(events, truths, strict=True):
            expected = evaluate(reread, event)
            assert evaluate(expr, event) is expected, f"{text} reads back as another expression"
            used = {name: v for name, v in event.items() if name in names}
            verdict.add(f"seed {seed}, {columns}\n  {text}", used, expected, found)


def agree(engine: Engine, n_tables: int) -> Verdict:
    """Judge `n_tables` tables."""
    verdict = Verdict()
    each_seed(n_tables, lambda seed: judge(engine, seed, verdict))
    return verdict


def each_seed(n: int, check: Callable[[int], None]) -> None:
    """Check `n` seeds, always the same; in the long profile 20 times as many, always new."""

    @settings(
        max_examples=n * (20 if LONG else 1),
        phases=(Phase.generate,),  # a seed does not shrink; the report shows short cases instead
        derandomize=not LONG,
        deadline=None,
        database=None,
    )
    @given(seed=seeds())
    def run(seed: int) -> None:
        check(seed)

    run()
