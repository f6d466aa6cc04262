"""Sizes, memory and work of a view."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from matchwood.encode.expression_kernels import ALWAYS, CONJUNCTION, NEVER, TREE
from matchwood.kernel.jit import compile_seconds
from matchwood.kernel.verify_kernels import COUNTERS

if TYPE_CHECKING:
    from matchwood.engine.access import Reader
    from matchwood.engine.segments.view import Part, View
    from matchwood.engine.stores.subscriptions import Subscriptions


def view_stats(view: View, readers: Sequence[Reader]) -> dict[str, Any]:
    """Sums over the parts; a constant or a predicate counts in every part that has it."""
    parts = view.searched
    indexes = [index.stats() for part in parts for index in part.store.routing.indexes]
    memory = _memory(view, sum([each["bytes"] for each in indexes]))
    kinds = np.concatenate([_kinds(part) for part in parts])
    contexts = view.contexts
    live = view.stored[-1] if view.context_part is None else view.context_part
    strings = live.store.attributes.context_strings
    names = {name for part in parts for name in part.store.attributes.named}
    counted = [part.store.work for part in parts]
    if not view.is_guarded:  # else the store has absorbed it
        counted += [reader.work for reader in readers]
    work = np.array(counted).sum(axis=0).tolist()
    return {
        "subscriptions": len(view),
        "conjunctions": int((kinds == CONJUNCTION).sum()),
        "trees": int((kinds == TREE).sum()),
        "always_true": int((kinds == ALWAYS).sum()),
        "never_true": int((kinds == NEVER).sum()),
        "attributes": len(names),
        "constants": sum([part.store.attributes.n_constants for part in parts]),
        "contexts": 0 if contexts is None else len(contexts),
        "context_strings": strings.n_constants,
        "predicates": sum([part.store.table.n_predicates for part in parts]),
        "unknown": _counts([dict(part.store.attributes.unknown) for part in parts]),
        "failed": _counts([dict(part.store.attributes.failed) for part in parts]),
        "bytes": memory,
        "bytes_per_subscription": round(sum(memory.values()) / max(1, len(view)), 1),
        "segments": [{"subscriptions": len(part), "gone": part.n_gone} for part in parts],
        "plan": view_plan(view),
        "indexes": indexes,
        "work": dict(zip(COUNTERS, work, strict=True)),
        "compile_seconds": round(compile_seconds(), 3),
    }


def view_plan(view: View) -> list[dict[str, Any]]:
    """What is where and why, part by part."""
    return [
        {"segment": number, **row}
        for number, part in enumerate(view.searched)
        for row in part.store.routing.rows()
    ]


def _kinds(part: Part) -> np.ndarray:
    kinds = part.store.table.kinds()
    return kinds[part.slots()] if part.n_gone else kinds


def _counts(found: list[dict[str, int]]) -> dict[str, int]:
    """The most of any part: each looks at the same events."""
    counts: dict[str, int] = {}
    for each in found:
        for name, n in each.items():
            counts[name] = max(n, counts.get(name, 0))
    return counts


def _without_texts(subscriptions: Subscriptions) -> int:
    return subscriptions.nbytes - subscriptions.texts.used_bytes


def _memory(view: View, indexes: int) -> dict[str, int]:
    stores = [part.store for part in view.searched]
    contexts = view.contexts
    return {
        "texts": sum([store.subscriptions.texts.used_bytes for store in stores]),
        "subscriptions": sum([_without_texts(store.subscriptions) for store in stores]),
        "expressions": sum([store.table.nbytes for store in stores]),
        "attributes": sum([store.attributes.nbytes for store in stores]),
        **({} if contexts is None else {"contexts": contexts.nbytes}),
        "indexes": indexes,
    }
