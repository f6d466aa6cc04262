"""Segment files: what a durable matcher holds, beside its log.

    folder/
    ├── checkpoint.json         the segments, and the number of the last change that they hold
    └── segments/
        ├── s-5f3a.../          one segment, as `snapshot.save` writes a store, with its numbers in
        │                       the order of addition beside it; written once
        └── s-5f3a...-12.npy    marks of its slots that are gone, by a hash of them

Files are derived from the log.  Segments never change, so a checkpoint writes those that have no
files yet, the marks that are new, and then replaces checkpoint.json in one step.  What that does
not name is left over and can be removed by the folder's one writer; a reader that finds a file gone
reads checkpoint.json again.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from matchwood.encode.leaves import LeafBatch
from matchwood.encode.relations import check_relations
from matchwood.engine.segments.view import Part
from matchwood.engine.snapshots.manifest import checksum, expect, replace_json, sync
from matchwood.engine.snapshots.parts import collect
from matchwood.engine.snapshots.snapshot import (
    load,
    read_arrays,
    read_beside,
    save_collected,
    write_array,
)
from matchwood.engine.stores.store import Store
from matchwood.errors import FormatError, SchemaError, StorageError

NAME = "checkpoint.json"
ASIDE = "checkpoint.json.new"
FOLDER = "segments"
OLD_SNAPSHOT = "snapshot"
"""What earlier versions wrote instead; it is not read, the log has everything."""

FORMAT, VERSION = "matchwood-checkpoint", 1
ORDER = "order"
_ATTEMPTS = 100
"""How often a reader follows a writer that replaces the files while they are opened."""
_SEGMENT = re.compile(r"s-[0-9a-f]{12}")
_OURS = re.compile(r"s-[0-9a-f]{12}(-\d+\.npy)?")
_SHAPE: dict[str, Any] = {
    "format": str,
    "version": int,
    "seq": int,
    "n_added": int,
    "segments": [{"name": str, "gone": {str: {"bytes": int, "crc32": int}}}],
}


class Checkpoint(NamedTuple):
    """What was read from the files."""

    seq: int
    """The last change that they hold."""
    n_added: int
    """The next number in the order of addition."""
    parts: list[Part]
    damaged: list[str]
    """What is wrong with segments that are missing in `parts`."""


def write_segment(
    folder: Path, store: Store, pause: Callable[[], None] | None = None, is_synced: bool = True
) -> str:
    """Write a store without gaps; returns the name of its files.  StorageError if it fails.

    Without `is_synced` files may be damaged when the machine fails: that is found when they are
    opened.
    """
    return write_collected(folder, collected(store), pause, is_synced)


class Collected(NamedTuple):
    """What is written of a store."""

    settings: dict[str, Any]
    arrays: dict[str, np.ndarray]
    order: np.ndarray
    """Numbers in the order of addition."""


def collected(store: Store) -> Collected:
    """The settings and arrays of a store without gaps; it may not change while they are in use."""
    subscriptions = store.subscriptions
    return Collected(*collect(store), subscriptions.order[: subscriptions.n_slots])


def copied(store: Store) -> Collected:
    """The same for later use: the store may change."""
    settings, arrays, order = collected(store)
    return Collected(
        deepcopy(settings), {name: each.copy() for name, each in arrays.items()}, order.copy()
    )


def write_collected(
    folder: Path,
    given: Collected,
    pause: Callable[[], None] | None = None,
    is_synced: bool = True,
) -> str:
    """As `write_segment`."""
    name = f"s-{secrets.token_hex(6)}"
    settings, arrays, order = given
    save_collected(
        (settings, arrays), folder / FOLDER / name, {ORDER: np.asarray(order)}, pause, is_synced
    )
    return name


def publish(
    folder: Path, parts: Sequence[Part], seq: int, n_added: int, linked: str | None = None
) -> None:
    """Make some parts, whose stores have files, the ones that are opened next.

    linked  the name of the files of subscriptions with contexts
    """
    base = folder / FOLDER
    try:
        base.mkdir(exist_ok=True)
        known = _known_marks(folder)
        segments = [{"name": p.store.file, "gone": _marks(base, p, known)} for p in parts]
        if linked is not None:
            segments.append({"name": linked, "gone": {}})
        sync(base)
        data = {"format": FORMAT, "version": VERSION, "seq": seq, "n_added": n_added}
        replace_json(folder / NAME, folder / ASIDE, {**data, "segments": segments})
    except OSError as error:
        raise StorageError(f"cannot write {str(folder / NAME)!r}: {error}") from error


def join(sources: Sequence[Path], target: Path) -> None:
    """Write the checkpoint.json of a folder that has the segments of several others."""
    found = [_manifest(source) or {"segments": [], "n_added": 0} for source in sources]
    data = {
        "format": FORMAT,
        "version": VERSION,
        "seq": 0,
        "n_added": max(each["n_added"] for each in found),
        "segments": [segment for each in found for segment in each["segments"]],
    }
    replace_json(target / NAME, target / ASIDE, data)


def _marks(base: Path, part: Part, known: dict[str, Any]) -> dict[str, Any]:
    """Write which slots are gone, unless a file says so."""
    if not part.n_gone:
        return {}
    content = hashlib.blake2b(part.gone.tobytes(), digest_size=7).digest()
    name = f"{part.store.file}-{int.from_bytes(content)}"
    return {name: known.get(name) or write_array(base, name, part.gone)}


def _known_marks(folder: Path) -> dict[str, Any]:
    """The files of marks that checkpoint.json names."""
    known: dict[str, Any] = {}
    with suppress(FormatError):
        for each in (_manifest(folder) or {}).get("segments", ()):
            known |= each["gone"]
    return known


def segment_names(folder: Path) -> list[str]:
    """The segments that a folder has; FormatError if its checkpoint.json cannot be used."""
    return [each["name"] for each in (_manifest(folder) or {}).get("segments", ())]


def remove_unnamed(folder: Path) -> None:
    """Remove what checkpoint.json does not name, and what earlier versions wrote; by the writer."""
    with suppress(OSError):
        (folder / ASIDE).unlink(missing_ok=True)
    named: set[str] = set()
    with suppress(FormatError):
        for each in (_manifest(folder) or {}).get("segments", ()):
            named |= {each["name"], *[f"{name}.npy" for name in each["gone"]]}
    shutil.rmtree(folder / OLD_SNAPSHOT, ignore_errors=True)
    base = folder / FOLDER
    for file in base.iterdir() if base.is_dir() else ():
        if file.name not in named and _OURS.fullmatch(file.name):
            if file.is_dir() and not file.is_symlink():
                shutil.rmtree(file, ignore_errors=True)
            else:
                with suppress(OSError):
                    file.unlink()


def forget(folder: Path) -> None:
    """Remove all files: they are of other options."""
    (folder / NAME).unlink(missing_ok=True)
    remove_unnamed(folder)


def read(
    folder: Path,
    verify: bool = True,
    where: Callable[[str], Path] | None = None,
    known: Mapping[str, Store] | None = None,
) -> Checkpoint | None:
    """The segments of a folder, mapped; None if it has none.

    FormatError if checkpoint.json cannot be used.  A segment that cannot be is left out.

    verify  look at checksums and values; what was checked on this machine before may skip this
    where   gives the folder of a segment by its name; by default it is inside
    known   stores of segments that are open, by name, and can be shared
    """
    base = folder / FOLDER
    for attempt in range(_ATTEMPTS):
        manifest = _manifest(folder)
        if manifest is None:
            return None
        parts, damaged = [], []
        for each in manifest["segments"]:
            try:
                store = (known or {}).get(each["name"])
                if store is None:
                    home = base / each["name"] if where is None else where(each["name"])
                    store = _opened(home, each["name"], verify)
                parts.append(_part(base, store, each["gone"], verify))
            except (FormatError, StorageError, OSError, KeyError) as error:
                damaged.append(str(error))
        if not damaged or attempt == _ATTEMPTS - 1 or _manifest(folder) == manifest:
            return Checkpoint(manifest["seq"], manifest["n_added"], parts, damaged)
    raise AssertionError("returned")


def _manifest(folder: Path) -> dict[str, Any] | None:
    try:
        found = json.loads((folder / NAME).read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        raise FormatError(f"{NAME} cannot be read: {error}") from error
    expect(found, {"format": str, "version": int}, NAME)
    if found["format"] != FORMAT or found["version"] > VERSION:
        raise FormatError(
            f"expected {NAME} in a version up to {VERSION}, found {found['format'][:60]!r} "
            f"{found['version']}"
        )
    if found.pop("checksum", None) != checksum(found):
        raise FormatError(f"the checksum of {NAME} does not fit")
    expect(found, _SHAPE, NAME)
    for each in found["segments"]:
        if not _SEGMENT.fullmatch(each["name"]) or not all(
            name.startswith(each["name"]) and _OURS.fullmatch(f"{name}.npy")
            for name in each["gone"]
        ):
            raise FormatError(f"expected names of segments in {NAME}, found others")
    return dict(found)


def _opened(home: Path, name: str, verify: bool) -> Store:
    """The store of a segment, mapped."""
    store = load(home, mmap=True, verify=verify)
    order = read_beside(home, verify=verify)[ORDER]
    n = store.subscriptions.n_slots
    is_order = order.dtype == np.int64 and order.shape == (n,)
    if not is_order or (n and (order[0] < 0 or (np.diff(order) <= 0).any())):
        raise FormatError(f"expected ascending numbers of {n} subscriptions in segment {name}")
    _check_comparisons(store, name)
    store.subscriptions.take_order(order)
    store.file = name
    return store


def _check_comparisons(store: Store, name: str) -> None:
    """FormatError if a comparison with a context is one that is refused.

    An earlier version took it, and wrote keys for it that are not those of events.
    """
    try:
        check_relations(LeafBatch(), store.attributes, {}, ())
    except SchemaError as error:
        raise FormatError(f"segment {name} has a comparison that is refused: {error}") from error


def _part(base: Path, store: Store, marks: dict[str, Any], verify: bool) -> Part:
    """A store without the slots that are marked."""
    n, part = store.subscriptions.n_slots, Part(store)
    for found in read_arrays(base, base, marks, mmap=False, verify=verify).values():
        slots = np.flatnonzero(np.unpackbits(found, bitorder="little"))
        if not len(slots) or slots[-1] >= n:
            raise FormatError(f"expected marks of {n} slots in segment {store.file}")
        part = part.without(slots.astype(np.int32))
    return part
