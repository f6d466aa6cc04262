"""Opening a durable matcher: its segments' files, and what the log has beyond them."""

from __future__ import annotations

import os
import warnings
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from matchwood.encode.schema import Schema
from matchwood.engine.durable import segment_files
from matchwood.engine.durable.folder import Durable
from matchwood.engine.durable.group_commit import check_seconds
from matchwood.engine.durable.log import FORMAT, Row
from matchwood.engine.durable.refused import RefusedRow, is_same, warn_of
from matchwood.engine.durable.replay import add_rows, replay, set_values
from matchwood.engine.input.given import read_path
from matchwood.engine.segments.context_draft import context_store
from matchwood.engine.stores.store import Store
from matchwood.engine.stores.tidy import forget
from matchwood.errors import FormatError, MatchwoodError, StorageError

if TYPE_CHECKING:
    from matchwood.engine.matcher import Matcher

REPLACED_AT_MOST = 10_000
"""Subscriptions that are replaced one by one; of more than these, and a quarter of all, everything
is built again in bulk."""


def options_of(
    meta: Mapping[str, Any], index: str | None, schema: Any, column_types: Any, config: Any
) -> dict[str, Any]:
    """The options of a folder: those given now, else those it was made with."""
    declared = schema if isinstance(schema, Schema) or schema is None else Schema(schema)
    is_given = index is not None and index != meta.get("index")
    return {
        "index": index or meta.get("index", "auto"),
        "config": dict(config) if config or is_given else meta.get("config", {}),
        "schema": meta.get("schema", {}) if declared is None else dict(declared),
        "column_types": meta.get("column_types", {})
        if column_types is None
        else dict(column_types),
    }


def opened(
    matcher: Matcher,
    folder: str | os.PathLike[str],
    read_only: bool,
    sync: bool,
    commit_every: float,
    given: tuple[Any, ...],
) -> Durable:
    """Fill a matcher with what a folder holds."""
    durable = Durable(read_path(folder), read_only, sync, check_seconds(commit_every))
    try:
        meta = durable.log.meta()
        options = options_of(meta, *given)
        has_same = all(meta.get(name) == value for name, value in options.items())
        if not meta and read_only:
            raise StorageError(
                f"expected a folder that was written to, found {str(folder)!r} empty"
            )
        durable.types = meta.get("types", {"attributes": {}, "own": {}})
        if not has_same or not _from_checkpoint(matcher, durable, options):
            from_log(matcher, durable, options, has_new_options=bool(meta) and not has_same)
        if not read_only and not has_same:
            if meta:  # the segments are of other options
                segment_files.forget(durable.folder)
            durable.log.write({"format": FORMAT, "seq": durable.seq, **options})
        if not read_only:
            durable.note_refused()
        warn_of(durable.folder.name, {}, durable.refused, stacklevel=3)
        return durable
    except BaseException:
        durable.close()
        raise


def _from_checkpoint(matcher: Matcher, durable: Durable, options: dict[str, Any]) -> bool:
    """Take over the segments and bring them up to date; False if only the log can be used.

    Segments that cannot be used are built again from the log.
    """
    try:
        found = segment_files.read(durable.folder)
    except FormatError as error:
        _warn(durable, "the segments", "are", error)
        durable.is_damaged = True
        return False
    if found is None:
        return False
    if found.damaged:
        _warn(durable, "a segment", "is", found.damaged[0])
        durable.is_damaged = True
    if not found.parts:
        return False
    for part in found.parts:
        part.store.attributes.column_types = dict(options["column_types"])
    matcher._hold_parts(found.parts, found.n_added)
    durable.seq = found.seq
    view = matcher._view
    has_values = view.is_guarded or view.context_part is not None
    if found.damaged and (view.is_guarded or (not has_values and durable.log.all_contexts())):
        return False
    missing = durable.log.rows(until=found.seq) if found.damaged else []
    missing = [row for row in missing if row.id not in matcher._view]
    return follow(matcher, durable, missing) is not None


def _warn(durable: Durable, what: str, verb: str, why: object) -> None:
    warnings.warn(
        f"{what} in {durable.folder.name!r} cannot be used and {verb} built again from the log, "
        f"which has everything: {why}",
        RuntimeWarning,
        stacklevel=6,
    )


def follow(matcher: Matcher, durable: Durable, missing: Sequence[Row] = ()) -> int | None:
    """Carry out what the log has beyond `durable.seq`; None if only building anew can.

    Returns how much has changed.

    missing  what the log has at `durable.seq` and the matcher has not
    """
    tail = durable.log.tail(durable.seq)
    if tail is None:
        return None
    view = matcher._view
    if sum(row.id in view for row in tail.rows) > max(REPLACED_AT_MOST, len(view) // 4):
        return None
    meta = durable.log.meta()
    attribute_types, known = meta.get("types", {}).get("own", {}), set(meta.get("refused", ()))
    n = len(tail.gone) + len(tail.rows) + len(tail.contexts) + len(missing)
    bound = bool(tail.contexts) or any(row.context is not None for row in tail.rows)
    refused: list[RefusedRow] = []
    try:
        if n:
            with matcher._changing(bound=bound, is_logged=False) as target:
                refused = add_rows(target, missing, attribute_types)
                refused += replay(target, tail, attribute_types, known)
                _check_known(refused, known)
    except MatchwoodError:
        return None  # the order of changes matters, and only the last state is known
    n_same = sum(is_same(durable.refused, each) for each in refused)
    changed = {*tail.gone, *[row.id for row in tail.rows]}
    left = {id_: each for id_, each in durable.refused.items() if id_ not in changed}
    durable.refused = left | {each.row.id: each for each in refused}
    durable.noted = meta.get("refused", [])
    durable.seq = tail.seq
    durable.types = meta.get("types", durable.types)
    durable.n_tail += n
    return n - n_same


def _check_known(refused: Sequence[RefusedRow], known: Collection[Any]) -> None:
    """Raise if one is refused that may not be where everything is built anew."""
    for each in refused:
        if each.row.id not in known:
            raise StorageError(f"subscription {each.row.id!r} is refused: {each.error}")


def from_log(
    matcher: Matcher, durable: Durable, options: dict[str, Any], has_new_options: bool = False
) -> None:
    """Fill a matcher with all rows of the log.

    has_new_options  they are not those that the folder has: a row that they refuse is an error
    """
    from matchwood.engine.matcher import Matcher

    meta = durable.log.meta()
    types = meta.get("types", {"attributes": {}, "own": {}})
    fresh = Matcher(
        options["index"], schema=options["schema"], column_types=options["column_types"],
        **options["config"],
    )  # fmt: skip
    rows, contexts = durable.log.rows(), durable.log.all_contexts()
    bound = bool(contexts) or any(row.context is not None for row in rows)
    with fresh._changing(bound=bound) as target:
        # types that contexts and expressions gave to attributes before
        if bound or isinstance(target, Store):
            attributes = context_store(target).attributes
            for name, kind in types["attributes"].items():
                attributes.get(name, kind)
        refused = add_rows(target, rows, types["own"])
        if has_new_options:
            _check_fits(refused)
        set_values(target, contexts)
        if bound and not isinstance(target, Store):
            forget(context_store(target))  # names that other parts have
    matcher._take(fresh)
    durable.refused = {each.row.id: each for each in refused}
    durable.noted = meta.get("refused", [])
    durable.seq = meta.get("seq", 0)
    durable.types = types
    durable.n_tail = len(matcher)


def _check_fits(refused: Sequence[RefusedRow]) -> None:
    for row, error in refused:
        raise StorageError(
            f"the log has a subscription {row.id!r} that is refused: {error}\n"
            "give Matcher.open a schema= that it fits, or open the folder without index=, schema= "
            "and column_types=, which sets it aside; the folder is as it was"
        )
