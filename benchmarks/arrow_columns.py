"""What becomes of a column of each Arrow type, and what a value costs.

    python benchmarks/arrow_columns.py [ROWS]

A column of 100,000 distinct values, or as many as the type has, to keys: CPU time per value, the
least of five rounds, and how many Python objects were made for values.  `v` has no declared type,
as in JSON, and is compared with constants of the kind in the third column ("-": its presence alone
is asked for).  The answers for the first 300 rows are compared with those of the rows as dicts.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import matchwood as mw
from matchwood.encode import entry_events
from matchwood.encode.arrow import column_entries, columns, computed, values

N = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000

CONSTANTS: dict[str, list[Any]] = {
    "number": [7, 1000, 50_000, 70_000.5, 99_999],
    "string": ["10", "word 4", "x", "word 99"],
    "bool": [True],
    "date": [date(1970, 1, 5), date(2001, 1, 1)],
    "timestamp": [datetime(1970, 1, 1, 0, 0, 7, tzinfo=UTC), datetime(2001, 1, 1, tzinfo=UTC)],
    "-": [],
}


def cases() -> Iterator[tuple[str, pa.Array, str]]:
    """Name, column, and the kind of the constants."""
    rng = np.random.default_rng(1)
    whole = rng.permutation(N)
    ints = pa.array(whole)
    small = pa.array(whole % 100)
    for name in ("int8", "uint8"):
        yield name, small.cast(name), "number"
    for name in ("int16", "int32", "int64", "uint16", "uint32", "uint64"):
        yield name, (ints if "16" not in name else pa.array(whole % 30_000)).cast(name), "number"
    yield "uint64 beyond int64", pa.array(whole.astype(np.uint64) + np.uint64(2**63)), "number"
    yield "float16", pa.array((whole % 2000).astype(np.float16)), "number"
    yield "float32", ints.cast("float32"), "number"
    yield "float64", pa.array(rng.random(N) * 1e5), "number"
    for kind in (pa.decimal32(7, 2), pa.decimal64(15, 2), pa.decimal128(18, 2)):
        yield str(kind), _decimals(whole, kind), "number"
    for kind in (pa.decimal128(38, 2), pa.decimal256(76, 2)):
        yield str(kind), _decimals(whole, kind), "number"
    yield "bool", pa.array(whole % 2 == 0), "bool"
    yield "bool8", pa.ExtensionArray.from_storage(pa.bool8(), small.cast("int8")), "bool"
    words = pa.array([f"word {i}" for i in whole])
    for text in (pa.string(), pa.large_string(), pa.string_view()):
        yield str(text), words.cast(text), "string"
    for kind in (pa.binary(), pa.large_binary()):
        yield str(kind), words.cast(kind), "string"
    yield "binary_view", words.cast(pa.string_view()).cast(pa.binary_view()), "string"
    yield "fixed_size_binary", pa.array([b"%08d" % i for i in whole], pa.binary(8)), "string"
    days = pa.array((whole % 20_000).astype(np.int32))
    yield "date32", days.cast(pa.date32()), "date"
    yield "date64", days.cast(pa.date32()).cast(pa.date64()), "date"
    for unit, ticks in (("s", 1), ("ms", 10**3), ("us", 10**6), ("ns", 10**9)):
        yield f"timestamp[{unit}]", pa.array(whole * ticks, pa.timestamp(unit)), "timestamp"
    zoned = pa.array(whole * 10**6, pa.timestamp("us", "Europe/Berlin"))
    yield "timestamp[us, zone]", zoned, "timestamp"
    yield "string, of times", zoned.cast(pa.timestamp("us", "UTC")).cast("string"), "timestamp"
    for name in ("time32[s]", "time32[ms]"):
        yield name, pa.array((whole % 86_400).astype(np.int32)).cast(name), "-"
    for name in ("time64[us]", "time64[ns]", "duration[s]", "duration[us]", "duration[ns]"):
        yield name, pa.array(whole % 86_400).cast(name), "-"
    yield "month_day_nano_interval", pa.array([pa.MonthDayNano([1, 2, 3])] * N), "-"
    yield "dictionary, ints", pc.dictionary_encode(small), "number"
    coded = pc.dictionary_encode(pa.array([f"word {i % 1000}" for i in whole]))
    yield "dictionary, strings", coded, "string"
    yield (
        "dictionary, decimals",
        pc.dictionary_encode(_decimals(whole % 99, pa.decimal128(38, 2))),
        "number",
    )
    yield "run_end_encoded", pc.run_end_encode(pa.array(np.sort(whole % 1000))), "number"
    offsets = pa.array(np.arange(N + 1, dtype=np.int32))
    yield "list", pa.ListArray.from_arrays(offsets, ints), "-"
    yield "large_list", pa.LargeListArray.from_arrays(offsets.cast("int64"), ints), "-"
    yield "fixed_size_list", pa.FixedSizeListArray.from_arrays(ints, 1), "-"
    yield (
        "list_view",
        pa.ListViewArray.from_arrays(offsets[:-1], pa.array([1] * N, "int32"), ints),
        "-",
    )
    yield "map", pa.MapArray.from_arrays(offsets, words, ints), "-"
    yield "struct", pa.StructArray.from_arrays([ints], ["w"]), "number"
    codes = pa.array((whole % 2).astype(np.int8))
    yield "sparse_union", pa.UnionArray.from_sparse(codes, [ints, words]), "number"
    yield "null", pa.nulls(N), "number"
    yield (
        "uuid",
        pa.ExtensionArray.from_storage(
            pa.uuid(), pa.array([b"%016d" % i for i in whole], pa.binary(16))
        ),
        "string",
    )
    yield "json", pa.ExtensionArray.from_storage(pa.json_(), words), "string"


def _decimals(whole: np.ndarray, kind: pa.DataType) -> pa.Array:
    return pa.array([Decimal(int(i)) / 4 for i in whole % 100_000], pa.decimal128(22, 2)).cast(kind)


class Counting:
    """Counts the values for which Python objects are made."""

    n = 0

    @classmethod
    def python_values(cls, column: Any) -> list[Any]:
        cls.n += len(column)
        return values.python_values(column)


def main() -> None:
    for module in (column_entries, columns, computed, entry_events):
        module.python_values = Counting.python_values  # type: ignore[attr-defined]
    print(f"{'type':26}{'ns a value':>11}{'objects':>10}  compared with")
    for name, column, kind in cases():
        m = mw.Matcher()
        label = "v.w" if name == "struct" else "v"
        for i, constant in enumerate(CONSTANTS[kind]):
            m.add(f"<{i}", mw.attr(label) < constant)
            m.add(f"={i}", mw.attr(label) == constant)
        m.add("absent", "v IS NULL")
        table = pa.table({"v": column})
        few = table.slice(0, 300)
        found = list(m.match_many(few))
        assert found == list(m.match_many(few.to_pylist())), name
        best = np.inf
        for _ in range(5):
            Counting.n, began = 0, time.thread_time_ns()
            m.encode(table)
            best = min(best, time.thread_time_ns() - began)
        print(
            f"{name:26}{best / N:11.1f}{Counting.n:10,}  {kind}",
            flush=True,
        )


if __name__ == "__main__":
    main()
