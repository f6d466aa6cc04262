"""Every function of computed attributes against Spark SQL, value by value."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from matchwood.encode.computed import find_value
from matchwood.errors import ParseError
from matchwood.lang.functions.evaluate import FUNCTIONS, Failed, Formula, TypeProblem
from matchwood.lang.general import read_scalar
from matchwood.lang.intervals import Interval
from matchwood.lang.lower import settled
from matchwood.lang.scalars import text_of
from oracle.functions import CALLS, COLUMNS, Calls, events
from oracle.spark_oracle import SparkSQL

N_EVENTS = 80
PER_FUNCTION = 17
FEWEST = 500
N_PAIRS = 100_000
N_PARTS = 20
"""Each part is a test of its own: 2,000,000 pairs in the long profile, which may go on with
`-k part5` where it was stopped.  Arguments of the first part are plain, those of others calls."""
CHUNK = 40
FAILED = object()
PARTS = [
    pytest.param(part, id=f"part{part}", marks=pytest.mark.long if part else ())
    for part in range(N_PARTS)
]


def ours(formula: Formula, event: dict[str, Any]) -> Any:
    try:
        return formula([find_value(event, name) for name in formula.inputs])
    except Failed:
        return FAILED


def same(mine: Any, spark: Any) -> bool:
    if isinstance(mine, list) and isinstance(spark, list):
        return len(mine) == len(spark) and all(map(same, mine, spark))
    if mine is None or spark is None:
        return mine is spark
    if isinstance(spark, datetime):
        return bool(mine == spark.replace(tzinfo=UTC) if spark.tzinfo is None else mine == spark)
    if isinstance(spark, timedelta):
        return isinstance(mine, Interval) and timedelta(microseconds=mine.amount) == spark
    if isinstance(spark, float):
        return isinstance(mine, float) and (mine == spark or (mine != mine and math.isnan(spark)))
    if isinstance(spark, Decimal):
        return isinstance(mine, (Decimal, int)) and mine == spark
    return type(mine) is type(spark) and bool(mine == spark)


def texts(rng: Random, nesting: float = 0) -> list[tuple[str, str, Formula]]:
    calls = Calls(rng, nesting)
    found = []
    for name, call in CALLS.items():
        n_made = 0
        while n_made < PER_FUNCTION:
            text = call(calls)
            try:
                tree = settled(read_scalar(text))
                formula = Formula(tree)
            except ParseError:
                continue  # a constant that fails, which is refused at the door
            found.append((name, text, formula))
            n_made += 1
    return found


def test_every_function_has_a_call_for_the_judge():
    assert set(FUNCTIONS) <= set(CALLS)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("part", PARTS)
def test_functions_are_what_spark_says(
    spark_sql: SparkSQL, part: int, record_property: Callable[[str, object], None]
) -> None:
    rng = Random(19 + part)
    rows = events(rng, N_EVENTS)
    table = pa.table(
        {
            "id": list(range(N_EVENTS)),
            **{n: pa.array([_arrow(r[n]) for r in rows], k) for n, k in COLUMNS.items()},
        }
    )
    frame = spark_sql.session.createDataFrame(table).cache()
    counts: Counter[str] = Counter()
    n_pairs = 0
    wrong: list[str] = []
    failing: dict[str, list[tuple[str, int]]] = {}
    made = texts(rng, nesting=0.5 if part else 0)
    skipped: Counter[str] = Counter()
    for start in range(0, len(made), CHUNK):
        chunk, answers = [], []
        for name, text, formula in made[start : start + CHUNK]:
            try:
                values = [ours(formula, row) for row in rows]
            except TypeProblem:
                skipped[name] += 1
                continue
            chunk.append((name, text, values))
            bad = [row for row, value in enumerate(values) if value is FAILED]
            if bad:
                failing.setdefault(name, []).append((text, rng.choice(bad)))
            guard = f"CASE WHEN id NOT IN ({', '.join(map(str, bad))}) THEN ({text}) END"
            answers.append(guard if bad else f"({text})")
        for (name, text, values), found in zip(chunk, _answers(frame, answers), strict=True):
            for row, mine in enumerate(values):
                if mine is FAILED:
                    continue
                counts[name] += mine is not None
                n_pairs += 1
                if isinstance(found, str):
                    wrong.append(f"{text}: Spark says {found[:300]}")
                    break
                if not same(mine, found[row]):
                    wrong.append(f"{text} on {rows[row]}: {mine!r}, Spark says {found[row]!r}")
                    break
    assert not wrong, f"{len(wrong)} of {len(made)}\n" + "\n".join(wrong[:40])
    fewest = FEWEST // 2 if part else FEWEST  # calls of calls are NULL more often
    few = {name: counts[name] for name in CALLS if counts[name] < fewest}
    assert not few, (few, skipped)
    assert n_pairs > N_PAIRS
    record_property("pairs", n_pairs)
    record_property("not_null", dict(counts))
    for text, row in [pair for each in failing.values() for pair in each[: 12 if part else 1]]:
        answer = _answers(frame.where(f"id = {row}"), [text])[0]
        assert isinstance(answer, str), (text, rows[row], answer)


def _arrow(value: Any) -> Any:
    return list(value.items()) if isinstance(value, dict) else value


def _answers(frame: Any, selected: list[str]) -> list[Any]:
    """The values of each text by row; a text alone that fails gives what Spark says."""
    try:
        named = [f"{text} AS r{i}" for i, text in enumerate(selected)]
        return [column.to_pylist() for column in frame.selectExpr(*named).toArrow().columns]
    except Exception as error:  # noqa: BLE001 - Spark's errors of any kind
        if len(selected) == 1:
            return [str(error)]
        middle = len(selected) // 2
        return _answers(frame, selected[:middle]) + _answers(frame, selected[middle:])


@pytest.mark.slow
def test_the_canonical_text_of_a_generated_call_reads_back() -> None:
    for _, text, formula in texts(Random(3), nesting=0.3):
        tree = read_scalar(formula.text)
        assert text_of(tree) == formula.text
        assert repr(settled(tree)) == repr(settled(read_scalar(text))), text
