"""IS TRUE, IS UNKNOWN, <=> and IS DISTINCT FROM on attributes that nothing declares."""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa
import pytest

import matchwood as mw
from naive import evaluate
from strategies import OPEN, event, expression

# text: whether it is TRUE for x = 5, 6, 'a', TRUE, ['a'], {'y': 1}, absent
TABLE = {
    "x <=> 5": "Y......",
    "NOT (x <=> 5)": ".YYYYYY",
    "x IS DISTINCT FROM 5": ".YYYYYY",
    "x IS NOT DISTINCT FROM 5": "Y......",
    "x <=> NULL": "......Y",
    "(x = 5) IS TRUE": "Y......",
    "(x = 5) IS NOT TRUE": ".YYYYYY",
    "(x = 5) IS FALSE": ".Y.....",
    "(x = 5) IS NOT FALSE": "Y.YYYYY",
    "(x = 5) IS UNKNOWN": "..YYYYY",
    "(x = 5) IS NULL": "..YYYYY",
    "(x = 5) IS NOT NULL": "YY.....",
    "(x = 5) IS NOT UNKNOWN": "YY.....",
    "(x = 5) <=> NULL": "..YYYYY",
    "(x IN (5, NULL)) IS UNKNOWN": ".YYYYYY",
    "(x NOT IN (5, 7)) IS NOT TRUE": "Y.YYYYY",
    "(x LIKE 'a%') IS UNKNOWN": "YY.YYYY",
    "(x BETWEEN 5 AND 5.5) IS NOT TRUE": ".YYYYYY",
    "(x = 5 AND x > 3) IS UNKNOWN": "..YYYYY",
    "(x = 5 OR x = 'a') IS UNKNOWN": ".Y.YYYY",
    "(NOT x = 5) IS UNKNOWN": "..YYYYY",
    "(x = 5 XOR x = 6) IS UNKNOWN": "..YYYYY",
    "x IS TRUE": "...Y...",
    "x IS NOT TRUE": "YYY.YYY",
    "x IS NOT FALSE": "YYYYYYY",
    "x IS UNKNOWN": "YYY.YYY",
    "x IS NULL": "......Y",
    "coalesce(x = 5, FALSE) = FALSE": ".YYYYYY",
    "CASE WHEN x = 5 THEN 1 ELSE 2 END = 2": ".YYYYYY",
    "(x RLIKE 'a') IS UNKNOWN": "YY.YYYY",
}
VALUES: list[Any] = [5, 6, "a", True, ["a"], {"y": 1}, None]


def said(found: mw.Matches | list[list[str]], text: str) -> str:
    return "".join(["Y" if text in found[i] else "." for i in range(len(VALUES))])


@pytest.mark.parametrize("text", TABLE)
def test_each_form_says_what_is_known_of_a_value_of_any_kind(text):
    m = mw.Matcher()
    m.add(text, text)
    m.add("printed", str(mw.parse(text)))
    found = [m.match({"x": value}) for value in VALUES]
    assert said(found, text) == TABLE[text]
    assert [(text in each) for each in found] == [("printed" in each) for each in found]
    many = m.match_many([{"x": value} for value in VALUES])
    assert said(many, text) == TABLE[text]
    lines = ['{"x": 5}', '{"x": 6}', '{"x": "a"}', '{"x": true}', '{"x": ["a"]}',
             '{"x": {"y": 1}}', "{}"]  # fmt: skip
    assert said(m.match_many_json(lines), text) == TABLE[text]
    assert said([m.match_json(line) for line in lines], text) == TABLE[text]
    for value in VALUES:
        assert m.explain(text, {"x": value}).matches == (text in m.match({"x": value}))


@pytest.mark.parametrize("text", TABLE)
def test_a_column_of_one_kind_says_the_same(text):
    m = mw.Matcher()
    m.add(text, text)
    for value in VALUES:
        table = pa.table({"x": pa.array([value, None])})
        found = m.match_many(table)
        assert found[0] == m.match({"x": value}), value
        assert found[1] == m.match({}), value


def test_all_forms_together_survive_save_load_and_removal(tmp_path):
    m = mw.Matcher()
    for text in TABLE:
        m.add(text, text)
    m.save(tmp_path / "s")
    loaded = mw.Matcher.load(tmp_path / "s")
    for value in VALUES:
        assert loaded.match({"x": value}) == m.match({"x": value})
    for text in TABLE:
        loaded.remove(text)
    assert loaded.stats()["attributes"] == 0


@pytest.mark.parametrize("text", ["x <=> 5", "(x > 5) IS UNKNOWN", "x IS DISTINCT FROM 5"])
def test_a_declared_attribute_is_asked_for_its_presence_alone(text):
    m = mw.Matcher(schema={"x": "int"})
    m.add(text, text)
    plain = {"x <=> 5": "x = 5", "(x > 5) IS UNKNOWN": "x IS NULL"}
    other = plain.get(text, "x <> 5 OR x IS NULL")
    m.add(other, other)
    for value in (5, 6, None):
        assert len(m.match({"x": value})) in (0, 2)
    assert m.stats()["attributes"] == 1


@pytest.mark.parametrize("seed", range(12))
def test_truth_of_any_condition_is_as_the_naive_evaluator_says(seed):
    rng = Random(seed)
    types = {"x": OPEN, "y": OPEN}
    m, expected = mw.Matcher(), {}
    for i in range(12):
        inner = expression(rng, types, rng.randint(1, 5))
        for words, truths in FORMS.items():
            text = f"({inner}) IS {words}"
            m.add((id_ := f"{i} {words}"), text)
            expected[id_] = inner, truths
    for _ in range(12):
        e = event(rng, types)
        found = set(m.match(e))
        for id_, (inner, truths) in expected.items():
            assert (id_ in found) == (evaluate(inner, e) in truths), (id_, str(inner), e)


FORMS = {
    "TRUE": (True,),
    "FALSE": (False,),
    "UNKNOWN": (None,),
    "NOT TRUE": (False, None),
    "NOT FALSE": (True, None),
    "NOT UNKNOWN": (True, False),
}
