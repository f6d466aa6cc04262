"""Data frames of other libraries before they are read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from matchwood.encode.event_batch import EncodedEvents
from matchwood.errors import EventError

NAN = ("absent", "number")
"""What NaN in a pandas frame may be."""


def collected(frame: Any) -> Any:
    """A polars LazyFrame carried out, an iterator as a list or table; anything else as it is.

    EventError for encoded events, which would be read as a list.
    """
    if isinstance(frame, Iterator):  # making its items may use the matcher
        return pa.table(frame) if hasattr(frame, "__arrow_c_stream__") else list(frame)
    if isinstance(frame, EncodedEvents):
        raise EventError("expected events, found those that `encode` made: give them to `find`")
    kind = type(frame)
    if kind.__name__ == "LazyFrame" and kind.__module__.split(".")[0] == "polars":
        return frame.collect()
    return frame


def with_nan(frame: Any, nan: str) -> Any:
    """A pandas frame whose NaN is a number, where that is asked for; anything else as it is.

    pandas has no other missing value in columns of floats, so NaN is absent unless it is said.
    """
    if nan not in NAN:
        raise EventError(f"expected nan= to be one of {', '.join(NAN)}, found {nan!r}")
    if nan == "absent" or not hasattr(frame, "iloc") or not hasattr(frame, "columns"):
        return frame
    table = pa.Table.from_pandas(frame, preserve_index=False)
    for at, name in enumerate(table.column_names):
        values = frame.iloc[:, at].to_numpy()
        if values.dtype.kind == "f":
            table = table.set_column(at, name, pa.array(values, from_pandas=False))
    return table
