r"""Where DuckDB, Spark SQL and Matchwood differ: what each says, one test per difference.

The rule: Matchwood follows Spark SQL, except that it never rounds a number, and that it refuses
what can only be a mistake.  Every shape left out of `shared.py` or respelled by a dialect is here.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import duckdb
import pytest
from pyspark.errors import PySparkException

import matchwood as mw
from matchwood.errors import ParseError, SchemaError
from matchwood.lang.parser import parse
from naive import evaluate

pytestmark = pytest.mark.spark

REFUSED = "refused"
EXACT = 2**53
"""From here on, not every integer is a DOUBLE."""


def matched(text: str, types: dict[str, str], event: dict[str, Any]) -> Any:
    """Does the Matcher match, or refuse?"""
    matcher = mw.Matcher(schema=types)
    try:
        matcher.add("s", text)
    except (ParseError, SchemaError):
        return REFUSED
    return matcher.match(event) == ["s"]


@pytest.fixture
def say(duck, spark_sql):
    """What DuckDB, Spark and Matchwood make of one text, on one value of one column."""

    def ask(text: str, kind: str, value: Any, name: str = "x") -> list[Any]:
        columns, events = {name: kind}, [{name: value}]
        answers = []
        for engine, error in ((duck, duckdb.Error), (spark_sql, PySparkException)):
            try:
                answers.append(engine.answers(columns, events, [text])[0][0])
            except error:
                answers.append(REFUSED)
        found = matched(text, columns, events[0])
        if found == REFUSED:  # the naive evaluator knows no declared types
            return [*answers, REFUSED]
        answers.append(evaluate(parse(text), events[0]))
        assert found == (answers[-1] is True)
        return answers

    return ask


# ── numbers: engines round, Matchwood does not ──────────────────────────────────────────────────


def test_an_int_constant_beyond_2_53_is_rounded_by_engines_against_a_double(say):
    text = f"x = {EXACT + 1}"
    assert say(text, "float", float(EXACT)) == [True, True, False]


def test_a_constant_with_exponent_makes_engines_round_an_int_column(say):
    assert say("x = 9007199254740992e0", "int", EXACT + 1) == [True, True, False]
    assert say("x < 9223372036854775807e0", "int", 2**63 - 1) == [False, False, True]


def test_one_constant_with_exponent_makes_engines_round_a_whole_in_list(say):
    text = f"x IN (1e300, {EXACT})"
    assert say(text, "int", EXACT + 1) == [True, True, False]


def test_one_bound_with_exponent_makes_duckdb_round_the_other_bound_too(say):
    text = f"x BETWEEN 1e0 AND {EXACT}"
    assert say(text, "int", EXACT + 1) == [True, False, False]


def test_a_decimal_constant_is_exact_everywhere(say):
    assert say("x = 9007199254740993.0", "int", EXACT + 1) == [True, True, True]
    assert say("x = 9007199254740992.0", "int", EXACT + 1) == [False, False, False]


def test_a_fraction_that_64_bits_cannot_hold_is_refused_rather_than_rounded(say):
    assert say("x = 9007199254740992.5", "int", EXACT) == [False, False, REFUSED]


def test_an_infinite_constant_is_refused_as_in_spark(say):
    assert say("x < 1e400", "float", 1.0) == [True, REFUSED, REFUSED]


def test_more_than_38_digits_are_taken_by_matchwood_alone(say):
    assert say("x < " + "9" * 41, "int", 1) == [REFUSED, REFUSED, True]


def test_nan_is_the_largest_number_and_equals_itself_everywhere(say):
    nan = float("nan")
    assert say("x > 1e308", "float", nan) == [True, True, True]
    assert say("x BETWEEN 0 AND 1", "float", nan) == [False, False, False]
    assert say("x <> 1", "float", nan) == [True, True, True]


def test_minus_zero_equals_zero_everywhere(say):
    assert say("x = 0", "float", -0.0) == [True, True, True]
    assert say("x < 0.0", "float", -0.0) == [False, False, False]


# ── types: a string may stand for a moment, nothing else is cast ────────────────────────────────


def test_a_number_in_quotes_is_cast_everywhere(duck, spark_sql):
    columns, event = {"x": "int"}, {"x": 5}
    for engine in (duck, spark_sql):
        assert engine.answers(columns, [event], ["x = '5'"])[0][0] is True
    assert matched("x = '5'", columns, event) is True


def test_a_number_against_a_bool_is_refused_as_in_spark(say):
    assert say("x = 1", "bool", True) == [True, REFUSED, REFUSED]


def test_a_number_against_a_string_is_refused_because_its_spelling_decides_in_spark(say, spark_sql):
    """Here 20.0 is 20; in Spark one casts the string to DOUBLE and the other to BIGINT."""
    assert say("x = 5", "string", "5") == [True, True, REFUSED]
    assert say("x = 5.0", "string", "5.0")[1:] == [True, REFUSED]
    assert say("x = 5", "string", "5.0")[1:] == [REFUSED, REFUSED]
    for text, value in (("cast(x AS BIGINT) = 5", " 5 "), ("cast(x AS DOUBLE) = 5.0", "5.0")):
        columns, event = {"x": "string"}, {"x": value}
        assert spark_sql.answers(columns, [event], [text])[0][0] is True
        assert matched(text, columns, event) is True


@pytest.mark.parametrize(
    ("constant", "kind"),
    [("5", "BIGINT"), ("5.5", "DOUBLE"), ("DATE '2026-01-01'", "DATE"),
     ("TIMESTAMP '2026-01-01'", "TIMESTAMP")],
)  # fmt: skip
def test_what_is_refused_beside_a_string_says_which_cast_takes_it(constant, kind):
    matcher = mw.Matcher(schema={"x": "string"})
    with pytest.raises(SchemaError, match=rf"or write cast\(x AS {kind}\)"):
        matcher.add(1, f"x = {constant}")
    matcher.add(1, f"cast(x AS {kind}) = {constant}")


def test_a_string_beside_a_timestamp_is_read_as_one_everywhere(say):
    moment = datetime(2024, 2, 29, tzinfo=UTC)
    assert say("x = '2024-02-29'", "timestamp", moment) == [True, True, True]


def test_a_string_beside_a_timestamp_that_is_none_is_refused_everywhere(say):
    moment = datetime(2024, 2, 29, tzinfo=UTC)
    assert say("x = 'soon'", "timestamp", moment) == [REFUSED, REFUSED, REFUSED]


def test_an_offset_in_a_timestamp_counts_as_in_spark(say):
    moment = datetime(2024, 2, 29, 10, tzinfo=UTC)
    text = "x = TIMESTAMP '2024-02-29 12:00:00+02:00'"
    assert say(text, "timestamp", moment) == [False, True, True]


# ── strings and patterns ────────────────────────────────────────────────────────────────────────


def test_a_backslash_escapes_in_a_string_as_in_spark(say):
    assert say(r"x = 'a\tb'", "string", "a\tb") == [False, True, True]
    assert say(r"x = 'a\\b'", "string", "a\\b") == [False, True, True]


def test_a_backslash_escapes_in_a_pattern_as_in_spark(say):
    assert say(r"x LIKE 'a\%'", "string", "a%") == [False, True, True]
    assert say(r"x LIKE 'a\%'", "string", "ab") == [False, False, False]


def test_a_backslash_before_an_ordinary_character_of_a_pattern_is_refused_as_in_spark(say):
    assert say(r"x LIKE 'a\\b'", "string", "ab") == [False, REFUSED, REFUSED]


def test_a_wildcard_matches_a_newline_everywhere(say):
    assert say("x LIKE 'a_b'", "string", "a\nb") == [True, True, True]


def test_double_quotes_hold_a_string_as_in_spark(say):
    assert say('x = "x"', "string", "x") == [True, True, True]
    assert say('x = "x"', "string", "y") == [True, False, False]


# ── names and operators ─────────────────────────────────────────────────────────────────────────


def test_names_are_case_sensitive_as_in_a_case_sensitive_spark(say):
    assert say("X = 1", "int", 1) == [True, REFUSED, None]


def test_back_ticks_quote_names_as_in_spark_and_double_quotes_do_not(say):
    assert say("`odd name` = 1", "int", 1, name="odd name")[1:] == [True, True]
    assert say('"odd name" = 1', "int", 1, name="odd name") == [True, REFUSED, REFUSED]


def test_xor_and_xnor_are_matchwoods_own(say):
    assert say("x XOR TRUE", "bool", False) == [REFUSED, REFUSED, True]
    assert say("x XNOR TRUE", "bool", False) == [REFUSED, REFUSED, False]


@pytest.mark.parametrize("left", [True, False, None])
@pytest.mark.parametrize("right", ["TRUE", "FALSE", "NULL"])
def test_xor_is_what_engines_call_unequal_and_xnor_equal(say, left, right):
    for ours, theirs in (("XOR", "<>"), ("XNOR", "=")):
        truth = evaluate(parse(f"x {ours} {right}"), {"x": left})
        assert say(f"(x) {theirs} ({right})", "bool", left)[:2] == [truth, truth]
