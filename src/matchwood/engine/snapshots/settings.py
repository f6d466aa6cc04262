"""The settings of a snapshot, beyond their shape: attributes refer to each other both ways.

`manifest.expect` has seen that every value is of its kind; here ids must be ids of attributes, and
a derived attribute and the one it comes from must name each other (`encode.attributes`).
"""

from __future__ import annotations

import math
from typing import Any

from matchwood.encode.exact import EXACT
from matchwood.encode.keys import OBJECT
from matchwood.encode.kinds import KINDS, is_computed, split
from matchwood.encode.relations import compatible
from matchwood.encode.schema import TYPES
from matchwood.engine.snapshots.manifest import expect, shortened
from matchwood.engine.stores.ids import check_id
from matchwood.errors import FormatError, MatchwoodError
from matchwood.lang.names import is_context, problem
from matchwood.lang.nodes import COMPARISONS
from matchwood.lang.scalars import named, tree_of

_CONTEXT = {"ids": list, "columns": [int], "patterns": [list]}
_NUMBERS = ("number", "int", "float")


def check_settings(settings: dict[str, Any]) -> None:
    """Raise a FormatError unless the attributes and the context fit together."""
    attributes = settings["attributes"]
    dropped = _checked_dropped(settings)
    names = [
        each["name"]
        for id_, each in enumerate(attributes)
        if each["source"] < 0 and id_ not in dropped
    ]
    _expect(len(set(names)) == len(names), "attributes with names of their own", "one name twice")
    bases = {name.removesuffix(EXACT) for name in names}
    bases |= {split(name)[0] for name in names}
    _expect(bases <= set(names), "attributes of events for exact ones and kinds", "none")
    derived: dict[int, int] = {}  # by which attribute each derived one is named
    for id_, each in enumerate(attributes):
        if id_ in dropped:
            continue
        _check_attribute(attributes, id_)
        for other in _derived_ids(each):
            _expect(other not in derived, "a derived attribute of one", f"{other} twice")
            derived[other] = id_
    for id_, each in enumerate(attributes):
        if each["source"] >= 0 and id_ not in dropped:
            _expect(derived.get(id_) == each["source"], f"attribute {id_} at its source", "none")
    is_free = dropped.isdisjoint(derived)
    _expect(is_free, "dropped attributes that are not in use", settings["dropped"])
    absences = {
        id_
        for id_, each in enumerate(attributes)
        if each["absence"] >= 0 and not is_context(each["name"])
    }
    is_same = sorted(settings["absences"]) == sorted(absences)
    _expect(is_same, "the attributes with an absence", settings["absences"])
    if "context" in settings:
        _check_context(settings["context"], attributes)


def _checked_dropped(settings: dict[str, Any]) -> set[int]:
    """The ids that were given back: each once, of an attribute that says nothing.

    In version 1 they may still say what was derived under them.
    """
    attributes, dropped = settings["attributes"], settings["dropped"]
    _expect(len(set(dropped)) == len(dropped), "each dropped attribute once", dropped)
    for id_ in dropped:
        _expect(0 <= id_ < len(attributes), "ids of attributes", id_)
        each = attributes[id_]
        says = each["name"], each["type"], each["absence"], each["patterns"]
        is_free = each["source"] >= 0 or says == ("", None, -1, {})
        _expect(is_free, f"nothing at attributes[{id_}]", each["name"])
    return set(dropped)


def _check_attribute(attributes: list[dict[str, Any]], id_: int) -> None:
    each = attributes[id_]
    where = f"attributes[{id_}]"
    known = (None, *TYPES, OBJECT) if is_context(each["name"]) else (None, *TYPES)
    _expect(each["type"] in known, f"a type at {where}", each["type"])
    if each["source"] >= 0:
        is_plain = each["source"] < len(attributes) and attributes[each["source"]]["source"] < 0
        _expect(is_plain, f"an attribute as source at {where}", each["source"])
        _expect(not list(_derived_ids(each)), f"nothing derived from {where}", "something")
        _expect(each["type"] is not None, f"a type at {where}", None)
    else:
        name, of_kind = split(each["name"])
        if is_computed(name):
            read = _read_computed(name)
            _expect(read == name, f"a name at {where}", each["name"])
            if of_kind is None and read == each["name"]:
                each["name"] = read  # it keeps the tree, so that the text is not read again
        else:
            _expect(problem(name) is None, f"a name at {where}", each["name"])
        if of_kind is not None:
            wanted = KINDS[of_kind]
            _expect(each["type"] == wanted, f"{wanted} at {where}", each["type"])
        if each["name"].endswith(EXACT):
            is_number = each["type"] in (None, "number")
            _expect(is_number, f"a number at {where}", each["type"])
        _expect("term" not in each, f"no relation at {where}", each.get("term"))
        _expect(not each.get("is_beside"), f"an attribute of events at {where}", "another")
    kind = {"pattern": None, "term": None, "is_beside": False}
    if each["absence"] != -1:
        _check_derived(attributes, id_, each["absence"], kind)
    for text, other in each["patterns"].items():
        _expect(each["type"] == "string", f"a string at {where}", each["type"])
        _check_derived(attributes, id_, other, {**kind, "pattern": text})
    for entry in each.get("terms", ()):
        _check_term(attributes, id_, entry)
        _check_derived(attributes, id_, entry[4], {**kind, "term": entry[:4]})
    if each.get("beside", -1) != -1:
        _check_derived(attributes, id_, each["beside"], {**kind, "is_beside": True})
        types = ("number", "float") if each["type"] in _NUMBERS else (each["type"],)
        found = attributes[each["beside"]]["type"]
        is_kind = each["type"] in (*_NUMBERS, "string")
        _expect(is_kind, f"a number or a string at {where}", each["type"])
        _expect(found in types, f"{types[0]} beside {where}", found)


def _read_computed(name: str) -> str | None:
    """The canonical name of a computed attribute; None if its text cannot be read."""
    try:
        return named(tree_of(name))
    except (MatchwoodError, RecursionError):
        return None


def _derived_ids(each: dict[str, Any]) -> list[int]:
    ids = [each["absence"], each.get("beside", -1), *each["patterns"].values()]
    ids += [term[-1] for term in each.get("terms", ()) if term]
    return [id_ for id_ in ids if id_ != -1]


def _is_derived(attributes: list[dict[str, Any]], id_: int) -> bool:
    return 0 <= id_ < len(attributes) and attributes[id_]["source"] >= 0


def _check_derived(
    attributes: list[dict[str, Any]], source: int, id_: int, kind: dict[str, Any]
) -> None:
    """Whether an attribute names another as derived from it, and that is what the other says."""
    where = f"an attribute derived from attributes[{source}]"
    _expect(_is_derived(attributes, id_), where, id_)
    each = attributes[id_]
    _expect(each["source"] == source, where, f"one derived from {each['source']}")
    found = {"pattern": each["pattern"], "term": each.get("term")}
    found["is_beside"] = each.get("is_beside", False)
    _expect(found == kind, f"{shortened(str(kind))} at attributes[{id_}]", str(found))
    if not kind["is_beside"]:
        _expect(each["type"] == "bool", f"bool at attributes[{id_}]", each["type"])


def _check_term(attributes: list[dict[str, Any]], id_: int, entry: list[Any]) -> None:
    where = f"attributes[{id_}].terms"
    _expect(len(entry) == 5, f"five values at {where}", entry)
    op, context, offset, is_float, derived = entry
    expect(op, str, where)
    expect(context, int, where)
    expect(derived, int, where)
    expect(is_float, bool, where)
    is_number = type(offset) is (float if is_float else int) and math.isfinite(offset)
    _expect(op in COMPARISONS, f"an operator at {where}", op)
    _expect(is_number, f"an offset at {where}", offset)
    is_known = 0 <= context < len(attributes)
    _expect(
        is_known and is_context(attributes[context]["name"]), f"a context's at {where}", context
    )
    _expect(attributes[context]["source"] < 0, f"no derived attribute at {where}", context)
    mine, other = attributes[id_]["type"], attributes[context]["type"]
    if mine is not None and other is not None:
        _expect(compatible(mine, other), f"types that compare at {where}", f"{mine} and {other}")


def _check_context(context: Any, attributes: list[dict[str, Any]]) -> None:
    expect(context, _CONTEXT, "settings.context")
    ids = [check_id(id_, "a context's id") for id_ in context["ids"]]
    _expect(len(set(ids)) == len(ids), "each context once", "one twice")
    n_columns = len(context["columns"])
    for attr in context["columns"]:
        is_known = 0 <= attr < len(attributes) and attributes[attr]["source"] < 0
        _expect(is_known and is_context(attributes[attr]["name"]), "columns of a context", attr)
    columns = set()
    for entry in context["patterns"]:
        _expect(len(entry) == 3, "three values at settings.context.patterns", entry)
        expect(entry[0], int, "settings.context.patterns")
        expect(entry[1], str, "settings.context.patterns")
        expect(entry[2], int, "settings.context.patterns")
        is_column = 0 <= entry[2] < n_columns and context["columns"][entry[2]] == entry[0]
        _expect(is_column, "the column of a pattern", entry[2])
        _expect(attributes[entry[0]]["type"] == "string", "patterns of strings", entry[0])
        columns.add(entry[2])
    plain = [attr for col, attr in enumerate(context["columns"]) if col not in columns]
    _expect(len(set(plain)) == len(plain), "one column of a value", "two")
    _expect(len(columns) == len(context["patterns"]), "a column for each pattern", "fewer")
    is_there = all(entry[0] in plain for entry in context["patterns"])
    _expect(is_there, "the column of each pattern's source", "none")


def _expect(is_so: bool, what: str, found: Any) -> None:
    if not is_so:
        raise FormatError(f"expected {what}, found {shortened(found)}")
