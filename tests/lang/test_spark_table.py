"""The parser against what Spark SQL answered, row by row (tests/fixtures/lang_spark.txt)."""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from matchwood.errors import ParseError
from matchwood.lang import Comparison, parse
from naive import evaluate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLE = Path(__file__).parents[1] / "fixtures" / "lang_spark.txt"
WORDS = {"datetime": dt, "Decimal": Decimal, "nan": float("nan"), "inf": float("inf")}

STRICTER = "stricter"
"""How a row ends where we refuse what Spark takes; docs/language.md says why."""


def rows() -> list[tuple[str, str]]:
    lines = TABLE.read_text().splitlines()
    blocks = "\n".join(line for line in lines if not line.startswith("# ")).split("\n\n")
    return [tuple(block.strip("\n").rsplit("\n", 1)) for block in blocks if block.strip()]  # type: ignore[misc]


LITERAL_SUBJECT = re.compile(
    r"(NOT )?('(?:[^'\\]|\\.)*'|DATE '[^']*'|[0-9]+|NULL|TRUE) "
    r"(?=(?:NOT )?(?:LIKE|IN|BETWEEN|IS)\b)"
)


def ours(text: str, is_boolean: bool) -> Any:
    """The value of a text: of a literal, or of a predicate, whose subject goes into an event."""
    if not is_boolean:
        tree = parse(f"x = ({text}\n)")
        return tree.value if isinstance(tree, Comparison) else None
    subject = LITERAL_SUBJECT.match(text)
    if subject is None:
        return evaluate(parse(text), {})
    text = f"{subject[1] or ''}x {text[subject.end() :]}"
    return evaluate(parse(text), {"x": ours(subject[2], is_boolean=False)})


def same(mine: Any, spark: Any) -> bool:
    if isinstance(spark, dt.datetime):
        return mine == spark.replace(tzinfo=dt.UTC)
    if isinstance(spark, float):
        return type(mine) is float and (mine == spark or (mine != mine and spark != spark))
    if isinstance(spark, Decimal):
        if type(mine) is Decimal:  # neither an int of 64 bits nor a double would do
            return mine == spark
        is_int = spark == spark.to_integral_value() and abs(spark) < 2**63
        return type(mine) is (int if is_int else float) and mine == (type(mine))(spark)
    return type(mine) is type(spark) and mine == spark


@pytest.mark.parametrize(("text", "answer"), rows())
def test_a_literal_means_what_it_means_in_spark(text: str, answer: str) -> None:
    if answer == "refused" or answer.endswith(STRICTER):
        with pytest.raises(ParseError):
            ours(text, is_boolean=answer.startswith("boolean"))
        return
    kind, _, value = answer.partition(" ")
    expected = eval(value, WORDS)
    assert same(ours(text, kind == "boolean"), expected)


@pytest.mark.spark
def test_spark_still_answers_as_the_table_says(spark: SparkSession) -> None:
    from pyspark.errors import PySparkException

    spark.conf.set("spark.sql.session.timeZone", "UTC")
    taken = [(text, answer) for text, answer in rows() if answer != "refused"]
    frame = spark.sql(
        "SELECT " + ", ".join(f"{text}\n AS c{i}" for i, (text, _) in enumerate(taken))
    )
    for (text, answer), (_, kind), value in zip(taken, frame.dtypes, frame.first(), strict=True):
        assert f"{kind} {value!a}" == answer.removesuffix(STRICTER).rstrip(), text
    for text, _ in set(rows()) - set(taken):
        with pytest.raises(PySparkException):
            spark.sql(f"SELECT {text}").collect()
