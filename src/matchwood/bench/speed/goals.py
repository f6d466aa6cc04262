"""The rows of the suite `speed`: what is measured, before, goal.

`before` was measured when the goals were set, on one core of another machine; the goals for JSON
lines are the faster of event-ruler (Java) and quamina (Go) on that machine.
"""

from __future__ import annotations

from matchwood.bench.goals import LEAST, MOST, Goal


def _micros(key: str, what: str, before: float | None, goal: float | None) -> Goal:
    return Goal(key, what, "µs", before, goal, LEAST)


def _rate(key: str, what: str, before: float | None, goal: float | None) -> Goal:
    return Goal(key, what, "/s", before, goal, MOST)


GOALS = (
    _micros("dict", "match(dict): 100K subscriptions, 30 attributes, 100 matches", 222, 15),
    _micros("dict p50", "the same, half of the calls", None, None),
    _micros("dict p99", "the same, 99 of 100 calls", None, None),
    _micros("dict index", "the same, the search of encoded events alone, in a batch", 17, None),
    _micros("dict keys", "the same, a dict to keys, for each attribute", 4.3, 0.15),
    _micros("small", 'match({"a": 1, "b": 2}): 10 subscriptions', 43, 5),
    _rate("dicts", "a list of dicts: 100K equality subscriptions, 15 attributes", 20_000, 300_000),
    _rate("equality batch", "the same events, encoded, in a batch", None, 1_000_000),
    _rate("equality dicts", "the same dicts one by one", None, 100_000),
    _rate("arrow", "the same events as an Arrow table", None, None),
    _rate("json 1K", "JSON lines of 900 bytes, 1K two-field rules", 9_500, 460_000),
    _rate("json 10K", "the same, 10K rules", 7_200, 214_000),
    _rate("json 100K", "the same, 100K rules", 5_900, 43_000),
    _rate("json range 1K", "JSON lines, one field and a range, 1K rules", 8_700, 35_000),
    _rate("json range 10K", "the same, 10K rules", 8_000, 1_600),
    Goal("computed batch", "100K, a third computed attributes, to plain ones: batch", "x", None,
         1.3, LEAST),
    Goal("computed alone", "the same, one event a call", "x", None, 1.3, LEAST),
    _rate("texts", "texts of five predicates to the index", 16_500, 60_000),
    _micros("begen batch", "1M, 7 predicates of 400 attributes, 1 % match: batch", 2_145, 75),
    _micros("begen alone", "the same, one event a call", 2_366, 150),
    _micros("begen limit", "the same batch, the first 10 matches of each event", None, None),
    Goal("begen counting", "the same batch: times faster than counting", "x", 0.9, 20, MOST),
    _micros("zipf batch", "the same with Zipf's law: batch", 2_257, 100),
    _micros("zipf alone", "the same, one event a call", 2_257, 200),
    _micros("pstree batch", "1M, 5 predicates of 100 attributes, 0.1 % match", 306, 60),
    _micros("sparse batch", "1M, 5 predicates of 30,000 attributes, 0.1 % match", 237, 25),
    Goal("memory", "bytes a subscription without its text (1M, 400 attributes)", "B", 575, 150,
         LEAST),
    _micros("abegen batch", "1M trees of ABE-Gen: batch", 724, 250),
    _micros("ads batch", "1M trees of advertisements: batch", 149, 50),
    Goal("conjunctions", "100K conjunctions, batch: a_tree against blocks", "x", None, 1.5, LEAST),
    Goal("conjunctions terms", "the same: terms (trees of a segment) to blocks", "x", None, 1.5,
         LEAST),
    Goal("growth", "10M against 1M subscriptions at equal matches", "x", None, 1.3, LEAST),
)  # fmt: skip
