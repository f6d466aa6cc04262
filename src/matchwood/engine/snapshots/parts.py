"""The parts of a store as settings (JSON) and arrays, and a store from them.

Constants of all dictionaries lie side by side, attribute after attribute:

    constant_attr   int32[K]    the attribute each constant belongs to, ascending
    constant_label  int64[K]    its label, ascending within an attribute
    constant_kind   uint8[K]    INT, FLOAT, NAN, TEXT or DECIMAL (whose digits are a text)
    constant_int, constant_float   the value, by kind; texts are in a text arena

Of indexes only those that check their own layouts (`Index.check`) are kept; the others are built
anew from the expressions when a snapshot is opened.
"""

from __future__ import annotations

from decimal import Decimal
from itertools import pairwise
from typing import Any

import numpy as np

from matchwood.encode.attribute import Attribute, Pattern, Term, formula_of
from matchwood.encode.attributes import Attributes
from matchwood.encode.dictionary import OrderedDictionary
from matchwood.encode.exact import EXACT, Exact
from matchwood.encode.expression_kernels import N_CODE, ExpressionLayout
from matchwood.encode.expressions import ExpressionTable
from matchwood.encode.keys import NAN, DictionaryKeys, FloatKeys, Keys, keys_for
from matchwood.encode.kinds import is_computed, split
from matchwood.encode.like import compile_pattern
from matchwood.encode.predicates import PredicateTable
from matchwood.encode.schema import Schema
from matchwood.engine.segments.planned import Planned
from matchwood.engine.snapshots.part_checks import (
    DECIMAL,
    FLOAT,
    INT,
    NAN_KIND,
    TEXT,
    Arrays,
    check_tables,
)
from matchwood.engine.snapshots.settings import check_settings
from matchwood.engine.stores.routing import Routing
from matchwood.engine.stores.store import Store
from matchwood.engine.stores.subscriptions import Subscriptions
from matchwood.engine.stores.texts import TextArena
from matchwood.errors import FormatError
from matchwood.index.core.protocol import is_checked
from matchwood.kernel.arrays import without_prefix


def collect(store: Store) -> tuple[dict[str, Any], Arrays]:
    """Settings and arrays of a store whose slots have no gaps."""
    n = store.subscriptions.n_slots
    routing = store.routing
    settings = {
        "index": routing.name,
        "config": routing.config,
        "indexes": [index.name for index in routing.indexes],
        "attributes": [_attribute_settings(each) for each in store.attributes.all],
        "dropped": store.attributes._free,
        "pinned": store.attributes.n_pinned,
        "absences": [each.id for each in store.attributes.absences],
    }
    if store.subscriptions.columns.types:
        settings["own_types"] = store.subscriptions.columns.types
    if store.attributes.declared.is_strict:
        settings["strict"] = dict(store.attributes.declared)
    arrays = {f"subscription_{k}": v for k, v in store.subscriptions.layout().items()}
    arrays |= _expression_arrays(store.table, n)
    arrays["merged_slot"], arrays["merged_attr"] = store.table.merged()
    arrays |= _constants(store.attributes)
    if store.contexts is not None:
        settings["context"], values = store.contexts.layout(n)
        arrays |= {f"context_{name}": array for name, array in values.items()}
    if isinstance(routing, Planned):
        arrays["planned"] = routing.choice_of(n)
    for i, index in enumerate(routing.indexes):
        if is_checked(type(index)):
            arrays |= {f"index{i}_{name}": array for name, array in index.layout().items()}
    store.table.shut()
    return settings, arrays


def rebuild(settings: dict[str, Any], arrays: Arrays, verify: bool, is_current: bool) -> Store:
    """A store from what `collect` gave; errors of any kind if it gave something else.

    verify      look at every value before a kernel does; what was checked before may skip this
    is_current  whether this version wrote it; indexes of an older one are built anew
    """
    check_settings(settings)
    if verify:
        check_tables(settings, arrays)
    table = _table(arrays)
    if "merged_slot" in arrays:  # not in version 1
        table.take_merged(arrays["merged_slot"], arrays["merged_attr"])
    attributes, contexts = _attributes(settings, arrays), None
    if "context" in settings:
        from matchwood.context.store import ContextStore

        contexts = ContextStore(attributes, table)
        contexts.take(settings["context"], without_prefix(arrays, "context_"))
    layouts = [
        (name, without_prefix(arrays, f"index{i}_") if is_current else None)
        for i, name in enumerate(settings["indexes"])
    ]
    if "planned" in arrays:
        routing: Routing = Planned.restored(table, layouts, arrays["planned"], verify)
    else:
        routing = Routing.restore(
            table, settings["index"], settings["config"], layouts, contexts, verify
        )
    subscriptions = Subscriptions.restore(without_prefix(arrays, "subscription_"))
    subscriptions.columns.types = settings.get("own_types", {})
    return Store(attributes, table, subscriptions, routing)


def _expression_arrays(table: ExpressionTable, n: int) -> Arrays:
    x = table.layout
    arrays = {f"predicate_{name}": array for name, array in table.predicates.saved().items()}
    arrays |= {f"expression_{k}": getattr(x, k)[:n] for k in ("kind", "start", "size")}
    return arrays | {"expression_code": x.code[: x.count[N_CODE]]}


def _table(arrays: Arrays) -> ExpressionTable:
    predicates = PredicateTable.restore(without_prefix(arrays, "predicate_"))
    kind, start, size, code = (
        arrays[f"expression_{name}"] for name in ("kind", "start", "size", "code")
    )
    count = np.array([len(code), len(code) - int(size.sum(dtype=np.int64))], np.int64)
    return ExpressionTable(ExpressionLayout(kind, start, size, code, count), predicates)


def _attribute_settings(attribute: Attribute) -> dict[str, Any]:
    return {
        "name": attribute.name,
        "type": attribute.type,
        "absence": attribute.absence_id,
        "patterns": {text: each.attr_id for text, each in attribute.patterns.items()},
        "source": attribute.source,
        "pattern": attribute.pattern,
        **_context_settings(attribute),
    }


def _context_settings(attribute: Attribute) -> dict[str, Any]:
    """Only of attributes that are compared with a context."""
    settings: dict[str, Any] = {}
    if attribute.term is not None:
        settings["term"] = list(attribute.term)
    if attribute.terms:
        settings["terms"] = [[*term, derived] for term, derived in attribute.terms.items()]
    if attribute.beside_id >= 0:
        settings["beside"] = attribute.beside_id
    if attribute.is_beside:
        settings["is_beside"] = True
    return settings


def _constants(attributes: Attributes) -> Arrays:
    attr: list[int] = []
    labels: list[int] = []
    values: list[Any] = []
    for attribute in attributes.all:
        if isinstance(attribute.keys, DictionaryKeys) and _owns(attributes, attribute):
            dictionary = attribute.keys.dictionary
            attr += [attribute.id] * len(dictionary)
            labels += dictionary.labels().tolist()
            values.extend(dictionary.values)  # += would make a SortedList of the whole
    kinds = np.array([_kind(value) for value in values], np.uint8)
    texts = TextArena()
    texts.put(np.arange(len(values)), [_constant_text(v) for v in values])
    return {
        "constant_attr": np.array(attr, np.int32),
        "constant_label": np.array(labels, np.int64),
        "constant_kind": kinds,
        "constant_int": np.array([v if type(v) is int else 0 for v in values], np.int64),
        "constant_float": np.array([v if type(v) is float else 0 for v in values], np.float64),
        **{f"constant_{k}": v for k, v in texts.layout(len(values)).items()},
    }


def _owns(attributes: Attributes, attribute: Attribute) -> bool:
    """Whether a dictionary is saved with this attribute: that of all contexts with the first."""
    if attribute.keys is not attributes.context_strings:
        return True
    sharing = [each.id for each in attributes.all if each.keys is attribute.keys]
    return attribute.id == sharing[0]


def _constant_text(value: Any) -> str | None:
    if isinstance(value, Exact):
        return str(value.value)
    return value if isinstance(value, str) else None


def _kind(value: Any) -> int:
    if value is NAN:
        return NAN_KIND
    if isinstance(value, Exact):
        return DECIMAL
    return TEXT if isinstance(value, str) else FLOAT if isinstance(value, float) else INT


def _attributes(settings: dict[str, Any], arrays: Arrays) -> Attributes:
    strict = settings.get("strict")
    declared = None if strict is None else Schema(strict, strict=True)
    attributes = Attributes()
    attributes.declared = Schema() if declared is None else declared
    dropped = set(settings["dropped"])
    for id_, each in enumerate(settings["attributes"]):
        keys = _keys(attributes, each)
        patterns = {text: Pattern(i, compile_pattern(text)) for text, i in each["patterns"].items()}
        attribute = Attribute(
            id_, each["name"], each["type"], keys, each["absence"], patterns,
            each["source"], each["pattern"],
            Term(*each["term"]) if "term" in each else None,
            {Term(*term): derived for *term, derived in each.get("terms", ())},
            each.get("beside", -1), each.get("is_beside", False), is_dropped=id_ in dropped,
        )  # fmt: skip
        attributes.all.append(attribute)
        if not attribute.is_derived and not attribute.is_dropped:
            attributes.by_name[attribute.name] = attribute
            if is_computed(attribute.name) and split(attribute.name) == (attribute.name, None):
                attribute.formula = formula_of(attribute.name)
                attributes.computed[id_] = attribute
        if isinstance(keys, DictionaryKeys) and _owns(attributes, attribute):
            keys.load_later(_DictionaryReader(arrays, id_))
    tested = set(np.unique(arrays["predicate_attr"]).tolist())
    for name, attribute in attributes.by_name.items():
        base, kind = split(name)
        if name.endswith(EXACT):
            attributes.by_name[name.removesuffix(EXACT)].exact_id = attribute.id
        elif kind is not None:
            attribute.base_id = attributes.by_name[base].id
            attributes.by_name[base].kinds[kind] = attribute
        attribute.is_asked = attribute.absence_id >= 0 or attribute.id in tested
    attributes.absences = [attributes.all[i] for i in settings["absences"]]
    attributes._free = settings["dropped"]
    # Version 1 does not tell which attributes were declared: all of its attributes stay.
    attributes.n_pinned = settings.get("pinned", len(attributes))
    attributes.n_kept = len(arrays["constant_attr"])
    for attribute in attributes.all:
        for term in attribute.terms:
            attributes.all[term.context].n_references += 1
    return attributes


def _keys(attributes: Attributes, settings: dict[str, Any]) -> Keys | None:
    """The keys of an attribute; those beside a context are the context's."""
    if not settings["type"]:
        return None
    if settings.get("is_beside"):
        is_string = settings["type"] == "string"
        return attributes.context_strings if is_string else FloatKeys()
    if settings["source"] >= 0:
        return keys_for(settings["type"])
    return attributes.keys_of(settings["name"], settings["type"])


class _DictionaryReader:
    """Reads one attribute's dictionary when it is first asked for."""

    def __init__(self, arrays: Arrays, attr: int) -> None:
        self._arrays = arrays
        self._attr = attr

    def __len__(self) -> int:
        first, last = self._slice()
        return last - first

    def _slice(self) -> list[int]:
        of = self._arrays["constant_attr"]
        found: list[int] = np.searchsorted(of, (self._attr, self._attr + 1)).tolist()
        return found

    def __call__(self) -> OrderedDictionary:
        a = self._arrays
        first, last = self._slice()
        texts = TextArena.restore(a, "constant_")
        values: list[Any] = []
        for i in range(first, last):
            kind = a["constant_kind"][i]
            if kind == TEXT:
                values.append(texts.get(i))
            elif kind == DECIMAL:
                values.append(_exact(texts.get(i)))
            elif kind == NAN_KIND:
                values.append(NAN)
            else:
                values.append(a["constant_int" if kind == INT else "constant_float"][i].item())
        if not all(low < high for low, high in pairwise(values)):
            raise FormatError(f"expected the constants of attribute {self._attr} to ascend")
        dictionary = OrderedDictionary()
        dictionary.restore(values, a["constant_label"][first:last].tolist())
        return dictionary


def _exact(digits: str | None) -> Exact:
    try:
        value = Decimal(digits or "")
    except ArithmeticError:
        value = Decimal("NaN")
    if not value.is_finite():
        raise FormatError(f"expected the digits of a decimal constant, found {digits!r}")
    return Exact(value)
