"""Versions: a matcher as a folder of segments, of which the next version writes only its own.

    version/
    ├── checkpoint.json       the segments and what is gone (`segment_files`)
    └── segments/
        ├── s-5f3a.../        a segment: written by the version that built it, linked by later ones
        └── s-5f3a...-12.npy  marks of its slots that are gone

A version does not change.  One that is derived from a table is not synced to the disk: what a
failing machine damages is found by checksums and built again.  Each is a whole folder, so
old ones can be removed in any order; where the file system has hard links, what they share takes
its room once.  A segment's name is never used again, so readers that have a segment of that name
need no other copy of it (`where`).
"""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from matchwood.engine.durable import log
from matchwood.engine.durable.segment_files import (
    ASIDE,
    FOLDER,
    NAME,
    Collected,
    collected,
    copied,
    join,
    publish,
    read,
    remove_unnamed,
    write_collected,
    write_segment,
)
from matchwood.engine.segments.background import merged_aside
from matchwood.engine.segments.merge import merged
from matchwood.engine.segments.planned import Planned
from matchwood.engine.segments.view import Part
from matchwood.engine.snapshots.manifest import sync
from matchwood.engine.snapshots.snapshot import read_manifest
from matchwood.engine.stores.store import Store
from matchwood.errors import FormatError, StorageError
from matchwood.kernel.marks import are_marked

if TYPE_CHECKING:
    from matchwood.engine.matcher import Matcher


class Frozen(NamedTuple):
    """What a matcher holds at one moment, to be written."""

    matcher: Matcher
    parts: tuple[Part, ...]
    linked: Collected | None
    """Subscriptions with contexts; or all there are, where they are in one store that changes in
    place."""
    n_added: int


def save_version(
    matcher: Matcher, folder: Path, before: Path | None = None, is_synced: bool = False
) -> None:
    """Write a matcher to a folder that is not there yet; StorageError if that fails.

    before  the version that it was opened from: segments that it has are linked
    is_synced  wait until every file is on the disk
    """
    matcher._merger.wait()
    with _held(matcher, collected) as found:
        _write(found, folder, before, is_synced, lambda part: Part(merged([part])))


def frozen(matcher: Matcher) -> Frozen:
    """What a matcher holds now, for `write_frozen`; it may change and be searched meanwhile.

    Segments are shared, because they never change; what changes in place is copied.
    """
    with _held(matcher, copied) as found:
        return found


def write_frozen(
    found: Frozen, folder: Path, before: Path | None, pause: Callable[[], None]
) -> None:
    """As `save_version`, synced, of what was held before; for a thread beside others.

    before  a version that an earlier call has written: segments that it has are linked
    pause   called after every small step; may raise to give up
    """

    def planned(part: Part) -> Part:
        fresh = merged_aside([part], pause)
        found.matcher._swap([part], fresh)  # else the next version would write it again
        return fresh

    _write(found, folder, before, True, planned, pause)


@contextmanager
def _held(matcher: Matcher, take: Callable[[Store], Collected]) -> Iterator[Frozen]:
    """What a matcher holds, which does not change meanwhile.

    take  gives what is written of a store that changes in place
    """
    with matcher._access.writing():
        if matcher._view.is_guarded:
            with matcher._as_stores(is_compact=True) as (store, _):
                yield Frozen(matcher, (), take(store), store.subscriptions.n_added)
            return
        with matcher._compact_contexts() as store:
            linked = None if store is None else take(store)
            view = matcher._frozen()
            parts = view.segments or (view.stored if linked is None else ())
            yield Frozen(matcher, parts, linked, view.n_added)


def _write(
    found: Frozen,
    folder: Path,
    before: Path | None,
    is_synced: bool,
    planned: Callable[[Part], Part],
    pause: Callable[[], None] | None = None,
) -> None:
    """Write what is held to a folder.

    planned  gives the segment that is written in place of a part that was a head
    """
    folder.mkdir(parents=True)
    (folder / FOLDER).mkdir()
    name = None
    if found.linked is not None:
        name = write_collected(folder, found.linked, pause, is_synced)
    written = []
    for part in found.parts:
        if before is not None and _is_linked(folder, part, before, is_synced):
            written.append(part)
            continue
        if not isinstance(part.store.routing, Planned) or part.n_gone:
            part = planned(part)
        part.store.file = write_segment(folder, part.store, pause, is_synced)
        written.append(part)
    publish(folder, written, 0, found.n_added, name)


def _is_linked(folder: Path, part: Part, before: Path, is_synced: bool) -> bool:
    """Link the segment of a part; False if the version before does not have it."""
    name = part.store.file
    # a version that was given up halfway has given names to segments that no folder has
    if name is None or not (before / FOLDER / name).is_dir():
        return False
    linked = folder / FOLDER / name
    link_tree(before / FOLDER / name, linked)
    for each in (linked, *filter(Path.is_dir, linked.iterdir())) if is_synced else ():
        sync(each)
    return True


def link_tree(source: Path, target: Path) -> None:
    """Copy a segment, or a file of marks, by links where the file system has them."""
    aside = target.with_name(f".{target.name}-{secrets.token_hex(6)}")
    try:
        if source.is_dir():
            shutil.copytree(source, aside, copy_function=_link_file)
        else:
            _link_file(str(source), str(aside))
        aside.rename(target)
    except (OSError, shutil.Error) as error:
        shutil.rmtree(aside, ignore_errors=True)
        raise StorageError(f"segment {source.name!r} cannot be copied: {error}") from error


def _link_file(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # another file system, or one without links
        shutil.copy2(source, target)


def copy_version(source: Path, target: Path) -> None:
    """Make a folder hold a version, in one step; what it held before is replaced.

    Segments that are there already are kept.  A reader of the version before follows to this one.
    """
    base = target / FOLDER
    try:
        base.mkdir(parents=True, exist_ok=True)
        for each in sorted((source / FOLDER).iterdir()):
            if not (base / each.name).exists():
                link_tree(each, base / each.name)
        aside = target / ASIDE
        shutil.copyfile(source / NAME, aside)
        aside.replace(target / NAME)
    except OSError as error:
        raise StorageError(f"cannot write the version {str(target)!r}: {error}") from error
    remove_unnamed(target)


def join_versions(sources: Sequence[Path], target: Path) -> None:
    """Make one version of several, which share no id; their segments are moved."""
    (target / FOLDER).mkdir(parents=True)
    for source in sources:
        for each in (source / FOLDER).iterdir():
            each.rename(target / FOLDER / each.name)
    join(sources, target)


def is_version(folder: Path) -> bool:
    """Whether a folder is a version; else it may be one that `Matcher.save` wrote.

    The folder of a durable matcher has a log, which holds more than its segments.
    """
    return (folder / NAME).exists() and not (folder / log.NAME).exists()


def generation_of(folder: Path) -> str:
    """What changes when other content takes the place of a version or of a snapshot.

    StorageError if there is neither.
    """
    if is_version(folder):
        return hashlib.blake2b((folder / NAME).read_bytes(), digest_size=12).hexdigest()
    return str(read_manifest(folder)["generation"])


def load_version(
    folder: Path,
    *,
    verify: bool = True,
    where: Callable[[str], Path] | None = None,
    column_types: Mapping[str, str] | None = None,
    others: Sequence[Matcher] = (),
) -> Matcher:
    """The matcher of a version, mapped.  FormatError if it is damaged.

    verify  as for Matcher.load
    where   gives the folder of a segment; by default it is inside
    column_types  as for Matcher; what is added later has these types
    others  matchers of other versions that are open: segments that they have are shared with them
    """
    from matchwood.engine.matcher import Matcher

    types = dict(column_types or {})
    known = {name: store for each in others for name, store in _segments(each, types)}
    found = read(folder, verify=verify, where=where, known=known)
    if found is None:
        raise StorageError(f"expected a version at {str(folder)!r}, found none")
    if found.damaged or not found.parts:
        why = found.damaged[0] if found.damaged else "it has no segments"
        raise FormatError(f"version {folder.name!r} is damaged: {why}")
    for part in found.parts:
        part.store.attributes.column_types = types
    matcher = Matcher.__new__(Matcher)
    matcher._hold_parts(found.parts, found.n_added)
    return matcher


def n_unmapped(matcher: Matcher) -> int:
    """Subscriptions that are in no file of a version, those with contexts left out."""
    view = matcher._view
    if view.is_guarded:
        return 0
    return sum(len(part) for part in view.stored if part.store.file is None)


def _segments(matcher: Matcher, types: dict[str, str]) -> Iterator[tuple[str, Store]]:
    """The stores of a matcher that do not change and have files, by name; of the same types."""
    view = matcher._view
    for part in () if view.is_guarded else view.segments:
        store = part.store
        is_plain = isinstance(store.routing, Planned) and store.contexts is None
        if store.file is not None and is_plain and store.attributes.column_types == types:
            yield store.file, store


class Neighbours(NamedTuple):
    """Numbers in the order of addition, at and beside some ids; -1 where there is none."""

    at: np.ndarray
    """Of the id itself."""
    before: np.ndarray
    """Of the next lower id."""
    after: np.ndarray
    """Of the next higher id."""


def near(matcher: Matcher, wanted: Sequence[Any]) -> Neighbours:
    """The numbers of ids, and of their neighbours, in a version whose ids ascend with its numbers.

    Reads a few ids of each segment for an id, and holds no list of all of them.
    """
    found = Neighbours(*np.full((3, len(wanted)), -1, np.int64))
    if not len(wanted):
        return found
    asked = np.array(wanted, object if isinstance(wanted[0], str) else np.int64)
    with matcher._reading() as view:
        for part in view.stored:
            if len(part):
                _look_near(part, asked, found)
    return found


def _look_near(part: Part, asked: np.ndarray, found: Neighbours) -> None:
    """Take the numbers of one part, where they are nearer."""
    subscriptions = part.store.subscriptions
    n = subscriptions.n_slots
    low, high = np.zeros(len(asked), np.int64), np.full(len(asked), n)
    while (is_open := low < high).any():  # a binary search for all at once
        middle = (low + high)[is_open] >> 1
        is_less = subscriptions.ids_of(middle) < asked[is_open]
        low[is_open] = np.where(is_less, middle + 1, low[is_open])
        high[is_open] = np.where(is_less, high[is_open], middle)
    is_there = low < n
    is_there[is_there] = subscriptions.ids_of(low[is_there]) == asked[is_there]
    is_held = is_there.copy()
    is_held[is_there] = ~are_marked(part.gone, low[is_there]) if part.n_gone else True
    found.at[is_held] = subscriptions.order[low[is_held]]
    before, after = _living(part, low - 1, -1), _living(part, low + is_there, 1)
    numbers = subscriptions.order[np.maximum(before, 0)]
    np.maximum(found.before, np.where(before < 0, -1, numbers), out=found.before)
    numbers = subscriptions.order[np.minimum(after, n - 1)]
    is_nearer = (after < n) & ((found.after < 0) | (numbers < found.after))
    found.after[is_nearer] = numbers[is_nearer]


def _living(part: Part, slots: np.ndarray, step: int) -> np.ndarray:
    """The next slots in a direction that are not gone; -1 or the number of slots at the end."""
    n, slots = part.store.subscriptions.n_slots, slots.copy()
    while part.n_gone:
        inside = (slots >= 0) & (slots < n)
        inside[inside] = are_marked(part.gone, slots[inside])
        if not inside.any():
            break
        slots[inside] += step
    return slots
