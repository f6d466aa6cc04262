r"""Hand-written and loosely written texts mean to the parser what they mean to Spark SQL.

The printed form, which `test_spark.py` compares, is only one of many spellings.  Here are the
others: every operator's second name, every form of literal, escapes, comments, and precedence
without parentheses.
"""

from __future__ import annotations

from random import Random

import pytest

from matchwood.lang.parser import parse
from naive import evaluate
from oracle.spellings import COLUMNS, EVENTS, TEXTS

pytestmark = pytest.mark.spark


def differences(spark_sql, texts: list[str]) -> list[str]:
    answers = spark_sql.answers(COLUMNS, EVENTS, [f"{text}\n" for text in texts])
    found = []
    for text, truths in zip(texts, answers, strict=True):
        expr = parse(text)
        ours = [evaluate(expr, event) for event in EVENTS]
        if ours != truths:
            found.append(f"{text}\n  Spark {truths}\n  ours  {ours}")
    return found


def test_every_spelling_means_what_spark_says(spark_sql):
    found = differences(spark_sql, TEXTS)
    assert not found, "\n".join(found)


def test_texts_without_parentheses_group_as_in_spark(spark_sql):
    rng = Random(7)
    leaves = [
        "b",
        "c",
        "i > 0",
        "i BETWEEN 1 AND 5",
        "s LIKE 'a%'",
        "f IN (0.5, NULL)",
        "d IS NULL",
    ]
    texts = []
    for _ in range(120):
        words = []
        for _ in range(rng.randint(2, 7)):
            words += [rng.choice(["AND", "OR"]), *["NOT"] * rng.choice([0, 0, 1, 2])]
            words.append(rng.choice(leaves))
        texts.append(" ".join(words[1:]))
    found = differences(spark_sql, texts)
    assert not found, "\n".join(found)
