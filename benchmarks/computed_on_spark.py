"""Computed attributes on Spark: computed by the workers, or by Spark before workers see the event.

    python benchmarks/computed_on_spark.py --events 200000 --subscriptions 20000

Only expressions that cannot fail take part (decision 0027 tells what happens to others).  All
sides have the same subscriptions:

    workers   `lower(brand) = 'b7' AND ...`: workers compute each expression
    match     the same as `match` does it: Spark computes them, rows in doubt are left to workers
    by hand   `c0 = 'b7' AND ...`: c0 is a column made by `selectExpr`

Prints the seconds of each, the fastest of `--repeats`, and ratios; matches must be equal.
"""

from __future__ import annotations

import argparse
import time
from random import Random
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

EXPRESSIONS = {
    "c0": "lower(brand)",
    "c1": "substr(sku, 1, 3)",
    "c2": "length(title)",
    "c3": "year(sold)",
    "c4": "coalesce(discount, 0)",
    "c5": "upper(concat(brand, '-', country))",
    "c6": "CASE WHEN price < 20 THEN 'low' WHEN price < 60 THEN 'middle' ELSE 'high' END",
    "c7": "trim(country)",
}
EVENTS = """
SELECT id AS event_id, concat('B', id % 997) AS brand, concat('S', id % 89, 'x', id % 13) AS sku,
       repeat('t', cast(id % 50 AS int)) AS title,
       date_add(DATE '2020-01-01', cast(id % 2000 AS int)) AS sold,
       CASE WHEN id % 3 = 0 THEN id % 40 END AS discount, concat(' c', id % 60, ' ') AS country,
       cast(id % 100 AS double) AS price
FROM range(0, {n}, 1, 4)
"""


def texts(n: int, rng: Random) -> list[str]:
    """Subscriptions over the names c0, c1, ... of the expressions."""
    found = []
    for _ in range(n):
        parts = [
            f"c0 = 'b{rng.randrange(997)}'",
            f"c1 = 'S{rng.randrange(10, 89)}'",
            f"c2 > {rng.randrange(40)}",
            f"c3 = {rng.randrange(2020, 2026)}",
            f"c4 >= {rng.randrange(40)}",
            f"c5 = 'B{rng.randrange(997)}- C{rng.randrange(60)} '",
            f"c6 = '{rng.choice(['low', 'middle', 'high'])}'",
            f"c7 = 'c{rng.randrange(60)}'",
        ]
        found.append(" AND ".join([rng.choice(parts[:2]), *rng.sample(parts[2:], 2)]))
    return found


def written(text: str) -> str:
    """The text with the expressions in the names' stead."""
    for name, expression in EXPRESSIONS.items():
        text = text.replace(f"{name} ", f"{expression} ")
    return text


def seconds(spark: SparkSession, events: DataFrame, rules: DataFrame) -> tuple[float, Any]:
    """How long matching takes with an index that is there, and how many matches with their sum."""
    from pyspark.sql import functions as f

    from matchwood.spark import match

    match(events, rules)  # builds the index
    start = time.perf_counter()
    found = match(events, rules).matches.select(
        f.sum(f.size("subscription_ids")),
        f.sum(f.aggregate("subscription_ids", f.lit(0).cast("bigint"), lambda a, b: a + b)),
    )
    answer = found.collect()[0]
    return time.perf_counter() - start, tuple(answer)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--events", type=int, default=200_000)
    parser.add_argument("--subscriptions", type=int, default=20_000)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    from matchwood.spark import computed_columns, local_session

    most_columns = computed_columns.MOST_COLUMNS
    spark = local_session("computed attributes", 2)
    try:
        spark.sql(EVENTS.format(n=options.events)).createOrReplaceTempView("made")
        events = spark.table("made").cache()
        events.count()
        names = texts(options.subscriptions, Random(1))
        by_worker = spark.createDataFrame(
            [(i, written(t)) for i, t in enumerate(names)], "id long, expr string"
        )
        by_name = spark.createDataFrame(list(enumerate(names)), "id long, expr string")
        columns = [f"{expression} AS {name}" for name, expression in EXPRESSIONS.items()]
        selected = events.selectExpr("event_id", *columns)
        times: dict[str, list[float]] = {"workers": [], "match": [], "by hand": []}
        answers = set()
        for _ in range(options.repeats):
            for side, (frame, rules, most) in {
                "workers": (events, by_worker, 0),
                "match": (events, by_worker, most_columns),
                "by hand": (selected, by_name, 0),
            }.items():
                computed_columns.MOST_COLUMNS = most
                took, answer = seconds(spark, frame, rules)
                times[side].append(took)
                answers.add(answer)
        if len(answers) != 1:
            raise SystemExit(f"expected equal matches, found {answers}")
        best = {side: min(each) for side, each in times.items()}
        print(f"{options.events} events, {len(names)} subscriptions, matches {answers.pop()[0]}")
        for side, took in best.items():
            print(f"{side}: {took:.2f} s, {options.events / took:,.0f} events/s")
        for side in ("workers", "match"):
            print(f"{side} to by hand: {best[side] / best['by hand']:.2f}")
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
