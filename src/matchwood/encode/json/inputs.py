"""The values of JSON documents that computed attributes read, from where a walk found them.

The walk notes for each input where its value is (`json/read_kernels`).  Here they become what
`json.loads` makes of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from struct import Struct
from typing import Any

import numpy as np

from matchwood.encode.json.plan import JsonPlan
from matchwood.encode.json.read_kernels import N_KINDS, Documents
from matchwood.encode.json.walk_kernels import COPIED, DOUBLE, FALSE, INTEGER, STRING, TRUE

AT_ONCE = 1_024
"""Documents whose notes become Python's numbers at the same time."""

_BITS, _DOUBLE = Struct("q"), Struct("d")


def input_values(
    names: list[str], noted: list[int], text: bytes, begin: int, end: int
) -> dict[str, Any]:
    """The values of the document `text[begin:end]` by the names of the inputs.

    noted  two numbers for each input, as the walk notes them

    Where a string has escapes it is the whole document, as `json.loads` reads it.
    """
    values: dict[str, Any] = {}
    at = 0
    for name in names:
        value, noted_end = noted[at], noted[at + 1]
        at += 2
        if noted_end < 0:
            continue
        stop, kind = noted_end // N_KINDS, noted_end % N_KINDS
        if kind == STRING:
            values[name] = text[value:stop].decode()
        elif kind == INTEGER:
            values[name] = value
        elif kind == DOUBLE:
            values[name] = _DOUBLE.unpack(_BITS.pack(value))[0]
        elif kind in (TRUE, FALSE):
            values[name] = kind == TRUE
        elif kind == COPIED:
            whole: dict[str, Any] = json.loads(text[begin:end])
            return whole
        else:
            values[name] = json.loads(text[value:stop])
    return values


def inputs_of(
    plan: JsonPlan, documents: Documents, text: bytes, begin: np.ndarray, end: np.ndarray
) -> Iterator[dict[str, Any]]:
    """The same for documents `text[begin[i]:end[i]]`, in order; {} for one that is left."""
    names, width = plan.inputs, 2 * len(plan.inputs)
    for first in range(0, len(begin), AT_ONCE):
        last = first + AT_ONCE
        noted = documents.input[first * width : last * width].tolist()
        spans = zip(begin[first:last].tolist(), end[first:last].tolist(), strict=True)
        for at, (start, stop) in enumerate(spans):
            mine = noted[at * width : (at + 1) * width]
            yield input_values(names, mine, text, start, stop)
