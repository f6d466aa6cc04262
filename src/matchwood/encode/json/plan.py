"""What becomes of each value at a path of JSON documents, as arrays for `json/key_kernels`.

The plan says, for every attribute that subscriptions use and every class of JSON values, whether
compiled code can make its key.  Where it cannot (dates in strings, patterns, values that are
errors) the value is read by hand: by the same code that reads a dict.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from matchwood.encode.arrow.columns import StringTable, string_table
from matchwood.encode.attribute import Attribute
from matchwood.encode.attributes import Attributes
from matchwood.encode.json.key_kernels import (
    AS_FLOAT,
    AS_IS,
    AS_NUMBER,
    AS_STRING,
    BOOLEAN,
    BY_HAND,
    FRACTION,
    N_CLASSES,
    NOTHING,
    TEXT,
    WHOLE,
    Plan,
    fill_strings,
)
from matchwood.encode.json.paths import make_paths
from matchwood.encode.json.walk_kernels import NONE, Paths
from matchwood.encode.keys import DictionaryKeys
from matchwood.encode.kinds import is_internal
from matchwood.encode.known import follows_context
from matchwood.encode.number_labels import NumberLabels, number_labels
from matchwood.kernel.arrays import grown, offsets_of
from matchwood.kernel.byte_kernels import PADDING

_ACTIONS = {
    "bool": {BOOLEAN: AS_IS},
    "int": {WHOLE: AS_IS},
    "float": {WHOLE: AS_FLOAT, FRACTION: AS_FLOAT},
    "number": {WHOLE: AS_NUMBER, FRACTION: AS_NUMBER},
    "string": {TEXT: AS_STRING},
}
"""By type: the classes of values that have a key, and how it is made."""


COST_OF_PLAN = 16
"""Documents read whole that take as long as planning for 1,000 attributes and constants."""


class JsonPlan(NamedTuple):
    """The paths in use, and what becomes of their values."""

    changes: int  # of `Attributes.changes` when it was made
    names: list[str]
    paths: Paths
    plan: Plan
    is_by_hand: bool  # whether every document is: some attribute needs other values or absences
    has_computed: bool  # whether computed attributes are to be added to what is read
    inputs: list[str]  # attributes that these read
    position: np.ndarray  # int32 by path: which of `inputs` it is, NONE
    readers: list[Any]  # `JsonReader`s that no thread uses


@dataclass
class _Tables:
    """Tables of constants, one per attribute that has a dictionary."""

    numbers: list[NumberLabels] = field(default_factory=list)
    strings: list[StringTable] = field(default_factory=list)

    def add(self, attribute: Attribute) -> int:
        keys = attribute.keys
        if not isinstance(keys, DictionaryKeys):
            return NONE
        if keys.type == "number":
            self.numbers.append(keys.dictionary.kept(number_labels))
            return len(self.numbers) - 1
        self.strings.append(keys.dictionary.kept(string_table))
        return len(self.strings) - 1


def plan_for(attributes: Attributes, n: int, at_least: int = 0) -> JsonPlan | None:
    """The plan for n more documents; None where it is old and a new one costs more than it saves.

    at_least  documents since the last change before a new one is made
    """
    plan: JsonPlan | None = attributes.json_plan
    if plan is not None and plan.changes == attributes.changes:
        return plan
    attributes.n_whole += n
    size = len(attributes.by_name) + attributes.n_new + attributes.n_kept
    if attributes.n_whole < at_least or attributes.n_whole * 1_000 < COST_OF_PLAN * size:
        return None
    attributes.n_whole = 0
    attributes.json_plan = make_plan(attributes)
    return attributes.json_plan


def make_plan(attributes: Attributes) -> JsonPlan:
    """The plan for all attributes of a matcher as they are now."""
    wanted = {name: each for name, each in attributes.by_name.items() if not each.is_hidden}
    inputs = attributes.read_by_computed()
    names = [*wanted, *sorted(inputs - wanted.keys())]
    n = len(names)
    numbers = {name: number for number, name in enumerate(inputs)}
    presence = np.full(n, NONE, np.int32)
    action = np.full((n, N_CLASSES), NOTHING, np.uint8)
    target = np.full((n, N_CLASSES), NONE, np.int32)
    table = np.full((n, N_CLASSES), NONE, np.int32)
    n_unknown = np.zeros((n, N_CLASSES), np.int32)
    tables = _Tables()
    for path, attribute in enumerate(wanted.values()):
        if attribute.keys is not None:
            action[path] = BY_HAND  # a value of another type is an error, which names it
            _plan_typed(attribute, path, action, target, table, tables)
            continue
        if attribute.is_asked:
            presence[path] = attribute.id
        for kind, each in attribute.kinds.items():
            accepted = _plan_typed(each, path, action, target, table, tables)
            if kind not in _ACTIONS:  # dates and times, which strings may be
                action[path, TEXT] = BY_HAND
                accepted = {TEXT}
            for of in set(range(N_CLASSES)) - accepted:
                n_unknown[path, of] += 1
    before: JsonPlan | None = attributes.json_plan
    is_same = before is not None and before.names == names
    numbered = {each.id: path for path, each in enumerate(wanted.values())}
    absences = [each for each in attributes.absences if not attributes.is_of_computed(each)]
    absent = [numbered.get(each.id, NONE) for each in absences]
    return JsonPlan(
        attributes.changes,
        names,
        before.paths if before is not None and is_same else make_paths(names),
        _filled(
            tables, presence, action, target, table, n_unknown,
            np.array(absent, np.int32),
            np.array([each.absence_id for each in absences], np.int32),
        ),
        NONE in absent
        or any(map(is_internal, wanted))
        or any(map(follows_context, attributes.computed.values())),
        bool(attributes.computed),
        list(numbers),
        np.array([numbers.get(name, NONE) for name in names], np.int32),
        [],
    )  # fmt: skip


def _plan_typed(
    attribute: Attribute,
    path: int,
    action: np.ndarray,
    target: np.ndarray,
    table: np.ndarray,
    tables: _Tables,
) -> set[int]:
    """Plan the classes that an attribute of one type takes; returns them."""
    actions = _ACTIONS.get(attribute.type or "", {})
    number = tables.add(attribute) if actions else NONE
    has_more = bool(attribute.patterns) or attribute.beside_id >= 0
    for of, how in actions.items():
        is_by_hand = has_more or (of == WHOLE and attribute.exact_id >= 0)
        is_taken = action[path, of] == BY_HAND and attribute.base_id >= 0
        action[path, of] = BY_HAND if is_by_hand or is_taken else how
        target[path, of] = attribute.id
        table[path, of] = number
    return set(actions)


def _filled(
    tables: _Tables,
    presence: np.ndarray,
    action: np.ndarray,
    target: np.ndarray,
    table: np.ndarray,
    n_unknown: np.ndarray,
    absent: np.ndarray,
    absence: np.ndarray,
) -> Plan:
    """The plan with its tables, one after the other."""
    numbers, strings = tables.numbers, tables.strings
    sizes = np.array([len(each.labels) for each in numbers], np.int64)
    lengths = _joined([each.lengths for each in strings], np.int64)
    n_strings = np.array([len(each.labels) for each in strings], np.int64)
    plan = Plan(
        presence, action, target, table, n_unknown, absent, absence,
        offsets_of(sizes),
        _joined([each.labels for each in numbers], np.int64),
        _joined([each.float_ceil for each in numbers], np.float64),
        _joined([each.float_exact for each in numbers], np.bool_),
        _joined([_padded(each.int_ceil, len(each.labels)) for each in numbers], np.int64),
        _joined([_padded(each.int_exact, len(each.labels)) for each in numbers], np.bool_),
        np.array([len(each.int_ceil) for each in numbers], np.int64),
        np.array([each.gap for each in numbers], np.int64),
        offsets_of(n_strings),
        _joined([each.labels for each in strings], np.int64),
        offsets_of(lengths),
        np.frombuffer(b"".join(each.texts for each in strings) + bytes(PADDING), np.uint8),
        np.array([_shared(each) for each in strings], np.int64),
        np.empty(len(lengths), np.int64),
        grown(np.empty(0, np.int32), 1 << (2 * len(lengths) + 1).bit_length(), NONE),
    )  # fmt: skip
    fill_strings(plan)
    return plan


def _shared(strings: StringTable) -> int:
    """Bytes that all constants of a table begin with; they are sorted."""
    if not len(strings.labels):
        return 0
    texts, lengths = np.frombuffer(strings.texts, np.uint8), strings.lengths
    n = int(min(lengths[0], lengths[-1]))
    last = len(texts) - int(lengths[-1])
    differing = np.flatnonzero(texts[:n] != texts[last : last + n])
    return int(differing[0]) if len(differing) else n


def sorting_of(plan: Plan) -> tuple[np.ndarray, np.ndarray]:
    """What `sort_ids` needs to sort entries by attribute."""
    ids = (plan.presence, plan.target, plan.absence)
    n = 1 + max(int(each.max(initial=NONE)) for each in ids)
    return np.empty(n, np.int64), np.zeros(n // 64 + 1, np.int64)


def count_unknown(attributes: Attributes, names: list[str], unknown: np.ndarray) -> None:
    """Add how many predicates were left unknown, by path, to the counts of attributes; set to 0."""
    for path in np.flatnonzero(unknown).tolist():
        attributes.unknown[names[path]] += int(unknown[path])
    unknown[:] = 0


def _joined(arrays: list[np.ndarray], dtype: type) -> np.ndarray:
    return np.concatenate([np.empty(0, dtype), *arrays]).astype(dtype, copy=False)


def _padded(array: np.ndarray, size: int) -> np.ndarray:
    """Constants that no integer reaches are the last ones; their places are never read."""
    return np.concatenate([array, np.zeros(size - len(array), array.dtype)])
