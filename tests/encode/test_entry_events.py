"""Events as entries mean what the same events mean as dicts."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

import matchwood as mw
from matchwood.encode.entry_events import EntryEvents
from matchwood.engine.text_files import read_cell

NAMES = ("price", "colour", "used", "other")
VALUES = {
    "price": st.one_of(st.integers(0, 9), st.floats(0, 9)),
    "colour": st.sampled_from(["red", "reddish", "blue"]),
    "used": st.booleans(),
    "other": st.integers(0, 3),
}
EVENTS = st.lists(st.fixed_dictionaries({}, optional=VALUES), max_size=12)


def matcher() -> mw.Matcher:
    found = mw.Matcher()
    texts = [
        "price < 5", "price IS NULL", "colour LIKE '%dd%'", "used", "NOT used OR price = 3",
        "colour = 'red' AND price BETWEEN 2 AND 7", "colour IS NOT NULL", "colour <> 'blue'",
    ]  # fmt: skip
    found.add_many(list(enumerate(texts)))
    return found


def entries(events: list[dict], convert, kind=None, read=None) -> EntryEvents:
    rows = [(n, name, value) for n, e in enumerate(events) for name, value in e.items()]
    return EntryEvents(
        len(events),
        np.array([n for n, _, _ in rows], np.int64),
        pa.array([name for _, name, _ in rows], pa.string()),
        pa.array([convert(value) for _, _, value in rows], kind),
        read,
    )


def as_struct(value):
    if isinstance(value, bool):
        return {"flag": value}
    return {"text": value} if isinstance(value, str) else {"number": float(value)}


STRUCT = pa.struct([("flag", pa.bool_()), ("text", pa.string()), ("number", pa.float64())])
MATCHER = matcher()


@given(EVENTS)
def test_entries_match_what_dicts_match(events: list[dict]) -> None:
    expected = list(MATCHER.match_many(events))
    assert list(MATCHER.match_many(entries(events, as_struct, STRUCT))) == expected
    texts = entries(events, lambda v: str(v).lower(), pa.string(), read_cell)
    assert list(MATCHER.match_many(texts)) == expected


def test_wrong_values_and_names_twice_spoil_their_event_alone() -> None:
    rows = np.array([0, 1, 1, 2, 3])
    names = pa.array(["price", "price", "price", "price", None])
    found = MATCHER.match_many(
        EntryEvents(5, rows, names, pa.array(["1", "1", "1", "much", "1"]), read_cell)
    )
    assert sorted(found.errors) == [1, 2]
    assert "once" in str(found.errors[1])
    assert "'price': expected number" in str(found.errors[2])
    assert found[0] == [0]
    assert found[3] == found[4] == [1]
