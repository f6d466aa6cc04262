"""Versions: a matcher as a folder of segments, of which the next version writes only its own.

    version/
    ├── checkpoint.json       the segments and what is gone (`segment_files`)
    └── segments/
        ├── s-5f3a.../        a segment: written by the version that built it, linked by later ones
        └── s-5f3a...-12.npy  marks of its slots that are gone

A version does not change.  It is derived from a table, so its files are not synced to the disk:
what a failing machine damages is found by checksums and built again.  Each is a whole folder, so
old ones can be removed in any order; where the file system has hard links, what they share takes
its room once.  A segment's name is never used again, so readers that have a segment of that name
need no other copy of it (`where`).
"""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from matchwood.engine import log
from matchwood.engine.merge import merged
from matchwood.engine.planned import Planned
from matchwood.engine.segment_files import (
    ASIDE,
    FOLDER,
    NAME,
    join,
    publish,
    read,
    remove_unnamed,
    write_segment,
)
from matchwood.engine.snapshot import read_manifest
from matchwood.engine.view import Part
from matchwood.errors import FormatError, StorageError

if TYPE_CHECKING:
    from matchwood.engine.matcher import Matcher


def save_version(matcher: Matcher, folder: Path, before: Path | None = None) -> None:
    """Write a matcher to a folder that is not there yet; StorageError if that fails.

    before  the version that it was opened from: segments that it has are linked
    """
    matcher._merger.wait()
    folder.mkdir(parents=True)
    (folder / FOLDER).mkdir()
    with matcher._access.writing():
        if matcher._view.is_guarded:
            with matcher._as_stores(is_compact=True) as (store, _):
                store.file = write_segment(folder, store, is_synced=False)
                publish(folder, [Part(store)], 0, store.subscriptions.n_added)
            return
        name = None
        with matcher._compact_contexts() as linked:
            if linked is not None:
                name = write_segment(folder, linked, is_synced=False)
        view = matcher._frozen()
        parts = view.segments or (view.stored if name is None else ())
        written = [_written(folder, part, before) for part in parts]
    publish(folder, written, 0, view.n_added, name)


def _written(folder: Path, part: Part, before: Path | None) -> Part:
    name = part.store.file
    if name is not None and before is not None:
        link_tree(before / FOLDER / name, folder / FOLDER / name)
        return part
    if not isinstance(part.store.routing, Planned) or part.n_gone:
        part = Part(merged([part]))
    part.store.file = write_segment(folder, part.store, is_synced=False)
    return part


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
) -> Matcher:
    """The matcher of a version, mapped.  FormatError if it is damaged.

    verify  as for Matcher.load
    where   gives the folder of a segment; by default it is inside
    column_types  as for Matcher; what is added later has these types
    """
    from matchwood.engine.matcher import Matcher

    found = read(folder, verify=verify, where=where)
    if found is None:
        raise StorageError(f"expected a version at {str(folder)!r}, found none")
    if found.damaged or not found.parts:
        why = found.damaged[0] if found.damaged else "it has no segments"
        raise FormatError(f"version {folder.name!r} is damaged: {why}")
    for part in found.parts:
        part.store.attributes.column_types = dict(column_types or {})
    matcher = Matcher.__new__(Matcher)
    matcher._hold_parts(found.parts, found.n_added)
    return matcher


def numbers_of(matcher: Matcher) -> tuple[np.ndarray, np.ndarray]:
    """Ids and their numbers in the order of addition, ascending."""
    with matcher._reading() as view:
        slots = [part.slots() for part in view.parts]
        pairs = list(zip(view.parts, slots, strict=True))
        order = np.concatenate([part.store.subscriptions.order[at] for part, at in pairs])
        ids = np.concatenate([part.store.subscriptions.ids_of(at) for part, at in pairs])
        ranks = np.argsort(order, kind="stable")
        return ids[ranks], order[ranks]
