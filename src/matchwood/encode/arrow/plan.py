"""How the columns of tables with one schema are read, for attributes as they are.

Columns of plain numbers whose keys compiled code can make are read where Arrow has them
(`arrow/row_kernels`), by the plan for JSON documents: the same classes of values, the same keys.
All others are left to `arrow/column_entries`.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from matchwood.encode.arrow.made import Entries
from matchwood.encode.arrow.row_kernels import (
    ABSENT,
    DOUBLE,
    INT32,
    INT64,
    KEY,
    PRESENT,
    Columns,
    Runs,
    find_columns,
)
from matchwood.encode.arrow.tables import has_union
from matchwood.encode.attribute import Attribute
from matchwood.encode.attributes import Attributes
from matchwood.encode.dicts.walk_kernels import PLAN
from matchwood.encode.json.key_kernels import (
    AS_FLOAT,
    AS_IS,
    AS_NUMBER,
    FRACTION,
    NOTHING,
    WHOLE,
)
from matchwood.encode.json.plan import JsonPlan, make_plan, plan_for
from matchwood.encode.json.walk_kernels import NONE
from matchwood.encode.keys import DictionaryKeys, float_key
from matchwood.encode.number_labels import number_labels
from matchwood.errors import EventError
from matchwood.kernel.arrays import offsets_of
from matchwood.kernel.bound import Binding

_KINDS = {
    pa.int32().id: (INT32, WHOLE),
    pa.int64().id: (INT64, WHOLE),
    pa.float64().id: (DOUBLE, FRACTION),
}
"""By type: how a value is stored, and its class."""

_MAKES = {WHOLE: (NOTHING, AS_IS, AS_NUMBER), FRACTION: (NOTHING, AS_FLOAT, AS_NUMBER)}
"""By class: what values become that are read here."""

_NAN = float_key(float("nan"))


class TablePlan(NamedTuple):
    """See the module's docstring."""

    made_of: JsonPlan
    schema: pa.Schema
    bound: Any  # the JSON plan as kernels take it
    has_union: bool
    read: list[int]  # columns that are read where they are
    kinds: np.ndarray  # of these, uint8
    left: list[int]  # all others that may hold something in use
    runs: Runs  # of the columns that are read
    read_ids: frozenset[int]  # attributes that they are
    present_ids: frozenset[int]  # attributes that have an entry wherever such a column is not null
    unknown: list[tuple[int, str, int]]
    """Places in `read`, labels, and how many kinds of predicates each value leaves unknown."""


def table_plan(attributes: Attributes, schema: pa.Schema, n: int) -> TablePlan:
    """The plan for tables of a schema; one that reads no column while it is not worth making."""
    made_of = plan_for(attributes, n)
    if made_of is None:
        return _planned(attributes, schema, None)
    found: TablePlan | None = attributes.table_plan
    if found is None or found.made_of is not made_of or not found.schema.equals(schema):
        found = attributes.table_plan = _planned(attributes, schema, made_of)
    return found


def repeated(name: str) -> EventError:
    """What is wrong with a table that has an attribute twice."""
    return EventError(
        f"expected one column for attribute {name!r}, found two: "
        "a dotted name and a struct's field, or the same name twice"
    )


def _planned(attributes: Attributes, schema: pa.Schema, made_of: JsonPlan | None) -> TablePlan:
    paths = {} if made_of is None else {name: path for path, name in enumerate(made_of.names)}
    read: list[int] = []
    kinds: list[int] = []
    left: list[int] = []
    unknown: list[tuple[int, str, int]] = []
    runs: list[tuple[int, int, int, int, int, int]] = []
    read_ids: set[int] = set()
    present_ids: set[int] = set()
    for number, (name, type_) in enumerate(zip(schema.names, schema.types, strict=True)):
        attribute = attributes.by_name.get(name)
        is_used = attribute is not None and not attribute.is_hidden
        stored, of = _KINDS.get(type_.id, (NONE, NONE))
        path = paths.get(name, NONE)
        if made_of is None or not is_used or of == NONE or path == NONE:
            if is_used or type_.num_fields or not _is_flat(type_):
                left.append(number)
            continue
        assert attribute is not None
        action = int(made_of.plan.action[path, of])
        if action not in _MAKES[of]:
            left.append(number)
            continue
        if attribute.id in read_ids:
            raise repeated(name)
        at = len(read)
        read_ids.add(attribute.id)
        read.append(number)
        kinds.append(stored)
        given = []  # not `attribute` itself, where values of another kind are another attribute's
        if made_of.plan.presence[path] != NONE:
            presence = attributes.all[made_of.plan.presence[path]]
            given.append(presence)
            runs.append((presence.id, at, PRESENT, NOTHING, NONE, 0))
        if action != NOTHING:
            target = attributes.all[made_of.plan.target[path, of]]
            given.append(target)
            table = int(made_of.plan.table[path, of])
            runs.append((target.id, at, KEY, action, table, _nan_key(target)))
        for each in given:
            present_ids.add(each.id)
            if each.absence_id >= 0 and not attributes.is_of_computed(each):
                runs.append((each.absence_id, at, ABSENT, NOTHING, NONE, 0))
        more = int(made_of.plan.n_unknown[path, of])
        if more:
            unknown.append((at, attribute.label, more))
    plan = _no_plan() if made_of is None else made_of
    return TablePlan(
        plan, schema, Binding(PLAN).of(plan.plan), has_union(schema), read,
        np.array(kinds, np.uint8), left, _as_runs(runs), frozenset(read_ids),
        frozenset(present_ids), unknown,
    )  # fmt: skip


@cache
def _no_plan() -> JsonPlan:
    """For tables none of whose columns is read where it is."""
    return make_plan(Attributes())


def _is_flat(kind: pa.DataType) -> bool:
    """Whether a column has no fields, and is stored as what it is."""
    return not (
        isinstance(kind, pa.BaseExtensionType)
        or pa.types.is_dictionary(kind)
        or pa.types.is_run_end_encoded(kind)
    )


def _nan_key(attribute: Attribute) -> int:
    keys = attribute.keys
    if isinstance(keys, DictionaryKeys) and keys.type == "number":
        return keys.dictionary.kept(number_labels).nan_key
    return _NAN


def _as_runs(rows: list[tuple[int, int, int, int, int, int]]) -> Runs:
    """Runs of columns, as arrays."""
    columns = zip(*sorted(rows), strict=True) if rows else [()] * 6
    attr, column, role, action, table, nan = columns
    return Runs(
        np.array(attr, np.int32), np.array(column, np.int32), np.array(role, np.uint8),
        np.array(action, np.uint8), np.array(table, np.int32), np.array(nan, np.int64),
        np.zeros(len(rows) + 1, np.int64), np.empty(0, np.int64), np.empty(0, np.int64),
    )  # fmt: skip


def with_entries(runs: Runs, entries: list[Entries]) -> Runs:
    """The runs of columns with others of entries that are given."""
    if not entries:
        return runs
    attr = np.concatenate([runs.attr, np.array([each.attr for each in entries], np.int32)])
    order = np.argsort(attr, kind="stable")
    none, zeros = np.full(len(entries), NONE, np.int32), np.zeros(len(entries), np.int64)
    sizes = np.concatenate([np.zeros(len(runs.attr), np.int64), [len(e.rows) for e in entries]])
    at = order[order >= len(runs.attr)] - len(runs.attr)
    given = [entries[i] for i in at.tolist()]
    of_columns = [np.concatenate([each, zeros.astype(each.dtype)])[order] for each in runs[2:6]]
    role, action, table, nan = of_columns
    return Runs(
        attr[order],
        np.concatenate([runs.column, none])[order],
        role,
        action,
        table,
        nan,
        offsets_of(sizes[order]),
        np.concatenate([each.rows for each in given]).astype(np.int64, copy=False),
        np.concatenate([each.keys for each in given]).astype(np.int64, copy=False),
    )


def columns_of(plan: TablePlan, table: pa.Table) -> tuple[Columns, pa.RecordBatch | None]:
    """Where the columns that are read are, in a batch that has to be kept meanwhile."""
    some = table if len(plan.read) == table.num_columns else table.select(plan.read)
    batches = some.to_batches() if plan.read else []
    if len(batches) > 1:
        batches = some.combine_chunks().to_batches()
    n = len(plan.read) if batches else 0  # a table without rows may have none
    values, bits, offset, size = np.zeros((4, n), np.int64)
    read = Columns(values, bits, offset, size, plan.kinds[:n])
    if batches:  # a Python object for each column and each buffer would take longer
        _, array = batches[0].__arrow_c_array__()
        find_columns(_pointer_of(array, b"arrow_array"), read)
    return read, batches[0] if batches else None


_pointer_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
"""The address of what a capsule has."""
