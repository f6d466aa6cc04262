"""Which changes of a micro-batch are taken: decided in the order of offsets, once, by the driver.

What is taken enters the driver's matcher at once.  What is refused becomes a row of errors.
"""

from __future__ import annotations

from itertools import groupby
from typing import Any

import pyarrow as pa

from matchwood.errors import SubscriptionError
from matchwood.spark.errors import error_row
from matchwood.spark.streams.contexts import (
    ADD,
    CONTEXT,
    CONTEXT_OF,
    SET,
    are_known,
    names_of,
    set_contexts,
)
from matchwood.spark.streams.state import CHANGE, END, Changes, Replica
from matchwood.spark.streams.worker import late
from matchwood.spark.unknown_names import Names, unknown_names

SUBSCRIBE, UNSUBSCRIBE = "subscribe", "unsubscribe"


class Decider:
    """Decides for one batch, with the state before it and the version of every id that is there."""

    def __init__(
        self,
        replica: Replica,
        live: dict[Any, int],
        shape: str,
        id_type: str,
        refuses_late: bool,
        known: Names = None,
    ) -> None:
        self._replica, self._live, self._known = replica, live, known
        self._shape, self._type, self._refuses_late = shape, id_type, refuses_late

    @property
    def _id_type(self) -> pa.DataType:
        return pa.int64() if self._type == "bigint" else pa.string()

    def decide(self, table: pa.Table, last: int | None) -> Changes:
        """Which changes are taken; those that are enter the driver's matcher at once."""
        replica = self._replica
        last = replica.last_offset if last is None else max(replica.last_offset, last)
        rest = table.sort_by([("offset", "ascending"), ("kind", "ascending"), ("id", "ascending")])
        rows = rest.to_pylist()
        errors: list[dict[str, Any]] = []
        good = [row for row in rows if self._is_good(row, replica.last_offset, errors)]
        done = self._take(good, errors)
        n_added = sum(row["kind"] == SUBSCRIBE for row in good)
        found = self._in_order(good, done, replica.next_version, errors)
        return Changes(found, replica.next_version + n_added, last, errors)

    def _is_good(self, row: dict[str, Any], last: int, errors: list[dict[str, Any]]) -> bool:
        kind, offset = row["kind"], row["offset"]
        problem = None
        if offset is None:
            problem = "expected an offset, found null"
        elif kind not in (SUBSCRIBE, UNSUBSCRIBE, CONTEXT):
            problem = (
                f"expected a kind among subscribe, unsubscribe, context, event, found {kind!r}"
            )
        elif row["id"] is None:
            problem = "expected an id, found null"
        elif self._refuses_late and offset <= last:
            problem = late(offset, last)
        if problem is None:
            return True
        errors.append(error_row("record", row["id"], SubscriptionError(problem)))
        return False

    def _take(self, rows: list[dict[str, Any]], errors: list[dict[str, Any]]) -> set[int]:
        """Carry out what can be, in order; returns which of the subscriptions were taken.

        Values of contexts that were taken are in their rows.
        """
        done: set[int] = set()
        n = 0
        changes = [row for row in rows if row["kind"] != UNSUBSCRIBE]
        if self._is_settled(changes):  # then the order decides nothing, see `carry_out`
            changes.sort(key=lambda row: row["kind"] != SUBSCRIBE)
        for kind, same in groupby(changes, key=lambda row: row["kind"]):
            part = list(same)
            if kind == SUBSCRIBE:
                done |= {n + i for i in self._add(part, n, errors)}
                n += len(part)
            else:
                errors += set_contexts(self._replica.matcher, part, self._shape)
        return done

    def _is_settled(self, rows: list[dict[str, Any]]) -> bool:
        """Whether the types of all values that contexts get are known before the batch."""
        shape, types = self._shape, self._replica.matcher.schema
        return are_known(
            types, (names_of(row["attributes"], shape) for row in rows if row["kind"] == CONTEXT)
        )

    def _add(
        self, rows: list[dict[str, Any]], n_before: int, errors: list[dict[str, Any]]
    ) -> set[int]:
        """Add subscriptions as versions; returns which of the rows were taken."""
        replica = self._replica
        first = replica.next_version + n_before
        refused: dict[int, Exception] = {}
        refused |= unknown_names([row["expr"] for row in rows], self._known)
        good = [n for n in range(len(rows)) if n not in refused]
        report = replica.matcher.add_many(
            pa.table({"id": pa.array([first + n for n in good], pa.int64()),
                      "expr": pa.array([rows[n]["expr"] for n in good], pa.string()),
                      "context": pa.array([rows[n].get(CONTEXT_OF) for n in good], self._id_type)})
        )  # fmt: skip
        refused |= {good[each.row]: each.error for each in report.errors}
        errors += [
            error_row("subscription", rows[n]["id"], error) for n, error in sorted(refused.items())
        ]
        return set(range(len(rows))) - refused.keys()

    def _in_order(
        self, rows: list[dict[str, Any]], done: set[int], first: int, errors: list[dict[str, Any]]
    ) -> pa.Table:
        """What begins and ends, at which offsets."""
        live: dict[Any, int | None] = {}  # what this batch changed; None: gone
        found: list[tuple[Any, ...]] = []
        number = -1
        for row in rows:
            id_, offset = row["id"], row["offset"]
            if row["kind"] == CONTEXT:
                if row["text"] is not None:
                    found.append((SET, None, offset, None, row["text"], id_, None))
                continue
            current = live[id_] if id_ in live else self._live.get(id_)
            if row["kind"] == SUBSCRIBE:
                number += 1
                if number not in done:
                    continue
                if current is not None:
                    found.append((END, current, offset, None, None, id_, None))
                of = row.get(CONTEXT_OF)
                found.append((ADD, first + number, offset, row["expr"], None, id_, of))
                live[id_] = first + number
            elif current is None:
                problem = SubscriptionError(f"expected the id of a subscription, found {id_!r}")
                errors.append(error_row("record", id_, problem))
            else:
                found.append((END, current, offset, None, None, id_, None))
                live[id_] = None
        kind = self._id_type
        fields = [*CHANGE, pa.field("id", kind), pa.field("context", kind)]
        columns = list(zip(*found, strict=True)) if found else [()] * len(fields)
        return pa.table(
            [pa.array(c, f.type) for c, f in zip(columns, fields, strict=True)],
            schema=pa.schema(fields),
        )
