"""Tables that change between two reads: an index is named by the rows it was built of."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

import matchwood as mw
from matchwood.spark import indexes, match, match_sharded, segment_build
from matchwood.spark.fingerprints import (
    Digest,
    digest,
    digest_of,
    digests,
    digests_of,
    with_buckets,
    with_hashes,
)
from matchwood.spark.shards import match_sharded as sharded
from spark.bookshop_frames import lists

pytestmark = pytest.mark.spark

ROWS = "id BIGINT, expr STRING, attributes STRING, context STRING"


class Subscriptions:
    """A file of subscriptions `a = number`, whose content can change under a DataFrame."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def say(self, number: int) -> None:
        rows = [
            {"id": 1, "expr": f"a = {number}", "attributes": None},
            {"id": 2, "expr": "a > 0", "attributes": '{"n": 1}'},
            {"id": 3, "expr": f"a = {number}", "attributes": "broken"},
        ]
        self._path.write_text("".join(json.dumps(row) + "\n" for row in rows))

    def changes_after(self, monkeypatch, module, name: str, number: int) -> None:
        """Let the file change as soon as a function of a module has returned."""
        function = getattr(module, name)

        def then_change(*arguments):
            found = function(*arguments)
            self.say(number)
            monkeypatch.undo()
            return found

        monkeypatch.setattr(module, name, then_change)


@pytest.mark.parametrize("after", ["look_at", "with_readable_attributes"])
def test_an_index_never_answers_for_another_table(
    spark, tmp_path: Path, monkeypatch, after: str
) -> None:
    # before: after the change back, event 1 had no match but 2, and the index was "reused"
    table, kept = Subscriptions(tmp_path / "table.json"), str(tmp_path / "kept")
    events = spark.createDataFrame(pa.table({"event_id": [1, 2], "a": [1, 2]}))
    expected = {1: {1: [1, 2], 2: [2]}, 2: {1: [2], 2: [1, 2]}}
    table.say(1)
    wishes = spark.read.schema(ROWS).json(str(tmp_path / "table.json")).drop("context")
    table.changes_after(monkeypatch, indexes if after == "look_at" else segment_build, after, 2)
    assert lists(match(events, wishes, snapshots=kept).matches) == expected[2]
    table.say(1)
    found = match(events, wishes, snapshots=kept)
    assert lists(found.matches) == expected[1]
    assert [row.id for row in found.errors.collect()] == ["3"]
    assert match(events, wishes, snapshots=kept).index.reused
    table.say(2)
    again = match(events, wishes, snapshots=kept)
    assert lists(again.matches) == expected[2]


def test_shards_refuse_a_table_that_changes_while_they_are_built(
    spark, tmp_path: Path, monkeypatch
) -> None:
    table = Subscriptions(tmp_path / "table.json")
    events = spark.createDataFrame(pa.table({"event_id": [1, 2], "a": [1, 2]}))
    table.say(1)
    wishes = spark.read.schema(ROWS).json(str(tmp_path / "table.json")).drop("context")
    table.changes_after(monkeypatch, sharded, "digests", 2)
    folder = tmp_path / "shards"
    with pytest.raises(mw.StorageError, match="stays as it is while shards are built"):
        match_sharded(events, wishes, str(folder), shards=2)
    assert list(folder.iterdir()) == []
    assert lists(match_sharded(events, wishes, str(folder), shards=2).matches) == {
        1: [2],
        2: [1, 2],
    }


def test_digests_of_parts_add_up_to_that_of_the_table(spark) -> None:
    table = spark.sql("SELECT id, IF(id % 3 = 0, NULL, cast(id AS STRING)) AS expr FROM range(100)")
    rows = with_hashes(table).toArrow().combine_chunks()
    parts = [digest_of(rows.slice(0, 30)), digest_of(rows.slice(30)), digest_of(rows.slice(0, 0))]
    assert parts[0].plus(parts[1]).plus(parts[2]) == digest(table)
    assert digest_of(rows.slice(0, 0)) == Digest() == digest(table.limit(0))
    marked = with_buckets(table).toArrow().combine_chunks()
    buckets = [digests_of(marked.slice(0, 30)), digests_of(marked.slice(30))]
    both = buckets[0].plus(buckets[1])
    assert both.total() == digests(table).total() == digest(table)
    assert not len(both.differing(digests(table)))
    assert digests(table.limit(0)).total() == Digest()


INSIDE = ["q", "item_0"], {"b": 1, "a": None}, ([{"a`b": [1, None]}],)


@pytest.mark.parametrize(
    "other",
    [
        (["q", None], INSIDE[1], INSIDE[2]),
        (None, INSIDE[1], INSIDE[2]),
        (INSIDE[0], {"b": 2}, INSIDE[2]),
        (INSIDE[0], INSIDE[1], ([{"a`b": [None, 1]}],)),
        (INSIDE[0], INSIDE[1], ([{"a`b": None}],)),
        (INSIDE[0], INSIDE[1], (None,)),
    ],
    ids=["null in an array", "no array", "another value", "order", "null inside", "no struct"],
)
def test_digests_see_what_is_inside_of_columns_of_any_name(spark, other) -> None:
    kinds = (
        "id INT, `values` ARRAY<STRING>, `each` MAP<STRING, INT>, "
        "`item_0.x``y` STRUCT<v: ARRAY<STRUCT<`a``b`: ARRAY<INT>>>>"
    )
    first, second = (spark.createDataFrame([(1, *each)], kinds) for each in (INSIDE, other))
    assert digests(first).differing(digests(second)).tolist() != []
    marked = with_buckets(first).toArrow().combine_chunks()
    assert digests(first).total() == digests_of(marked).total() == digest(first)
    same = spark.createDataFrame([(1, INSIDE[0], {"b": 1}, INSIDE[2])], kinds)
    assert not len(digests(first).differing(digests(same))), "a null in a map is an absent entry"
