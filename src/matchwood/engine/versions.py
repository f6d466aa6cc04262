"""Versions: a matcher as a folder of segments, of which the next version writes only its own.

    version/
    ├── checkpoint.json       the segments and what is gone (`segment_files`)
    └── segments/
        ├── s-5f3a.../        a segment: written by the version that built it, linked by later ones
        └── s-5f3a...-12.npy  marks of its slots that are gone

A version is changed by nobody.  Each is a whole folder, so old ones can be removed in any order;
where the file system has hard links, what they share takes its room once.  A segment's name is
never used again, so readers that have a segment of that name need no other copy of it (`where`).
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from matchwood.engine.merge import merged
from matchwood.engine.planned import Planned
from matchwood.engine.segment_files import FOLDER, publish, read, write_segment
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
            with matcher._as_one(is_compact=True) as store:
                store.file = write_segment(folder, store)
                publish(folder, [Part(store)], 0, store.subscriptions.n_added)
            return
        view = matcher._frozen()
        parts = view.parts[:-1] or view.parts
        written = [_written(folder, part, before) for part in parts]
    publish(folder, written, 0, view.n_added)


def _written(folder: Path, part: Part, before: Path | None) -> Part:
    name = part.store.file
    if name is not None and before is not None:
        _link(before / FOLDER / name, folder / FOLDER / name)
        return part
    if not isinstance(part.store.routing, Planned) or part.n_gone:
        part = Part(merged([part]))
    part.store.file = write_segment(folder, part.store)
    return part


def _link(source: Path, target: Path) -> None:
    try:
        shutil.copytree(source, target, copy_function=_link_file)
    except (OSError, shutil.Error) as error:
        raise StorageError(f"segment {source.name!r} cannot be copied: {error}") from error


def _link_file(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # another file system, or one without links
        shutil.copy2(source, target)


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
