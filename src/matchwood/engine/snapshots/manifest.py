"""The manifest of a snapshot: what a save wrote, checked before anything of it is used.

    format, version   of the snapshot; a reader refuses those that it does not know
    generation        the folder of its arrays: a plain name inside the snapshot
    settings          the parts of a store that are no arrays (parts.py)
    files, beside     name -> {"bytes": size, "crc32": checksum} of every array
    checksum          of all of the above

A manifest may come from anywhere, so every value is looked at before it is used: `expect` compares
it with a shape and says where the two differ.
"""

from __future__ import annotations

import json
import os
import re
import zlib
from pathlib import Path
from typing import Any

from matchwood.errors import FormatError, StorageError

FORMAT = "matchwood-snapshot"
VERSION = 4
"""Raised whenever an older version could misread what this one writes."""
OF_ONE_STORE = 3
"""What is written where there is one store (`pairs`): the version before reads it as well."""
OLDEST = 1
"""The first version that this one reads."""

NAME = "manifest.json"
BESIDE = "beside"
GENERATION = re.compile(r"g-[0-9a-f]{12}")
_FILE = re.compile(r"[^/\\\0]{1,200}")
_FILES = {str: {"bytes": int, "crc32": int}}
_TEXT_OR_NOTHING = (str, type(None))
_WORDS = {
    int: "a whole number",
    str: "a text",
    bool: "true or false",
    list: "a list",
    _TEXT_OR_NOTHING: "a text or null",
}

SHAPE: dict[str, Any] = {
    "format": str,
    "version": int,
    "generation": str,
    "settings": {
        "index": str,
        "config": {str: object},
        "indexes": [str],
        "attributes": [
            {
                "name": str,
                "type": _TEXT_OR_NOTHING,
                "absence": int,
                "patterns": {str: int},
                "source": int,
                "pattern": _TEXT_OR_NOTHING,
                "term?": list,
                "terms?": [list],
                "beside?": int,
                "is_beside?": bool,
            }
        ],
        "dropped": [int],
        "pinned?": int,
        "strict?": {str: str},
        "absences": [int],
        "context?": {str: object},
        "own_types?": {str: str},
        "linked?": {str: object},
    },
    "files": _FILES,
    "beside?": _FILES,
}


def expect(value: Any, shape: Any, where: str) -> None:
    """Compare a JSON value with a shape; a difference is a FormatError that says where it is.

    A shape is a type, a list of one shape, `{str: shape}` for a mapping with any names, or a
    mapping with these names, those that end in ? optional.
    """
    if isinstance(shape, list):
        if not isinstance(value, list):
            raise _unexpected("a list", value, where)
        for i, each in enumerate(value):
            expect(each, shape[0], f"{where}[{i}]")
    elif isinstance(shape, dict):
        if not isinstance(value, dict):
            raise _unexpected("an object", value, where)
        for name, each in shape.items():
            if name is str:
                for key, item in value.items():
                    expect(item, each, f"{where}.{key}")
            elif name.removesuffix("?") in value:
                expect(value[name.removesuffix("?")], each, f"{where}.{name.removesuffix('?')}")
            elif not name.endswith("?"):
                raise FormatError(f"expected {where}.{name}, found none")
    elif not isinstance(value, shape) or (shape is int and not _is_int64(value)):
        raise _unexpected(_WORDS[shape], value, where)


def _is_int64(value: Any) -> bool:
    return not isinstance(value, bool) and -(2**63) <= value < 2**63


def _unexpected(what: str, value: Any, where: str) -> FormatError:
    return FormatError(f"expected {what} at {where}, found {shortened(value)}")


def shortened(value: Any) -> str:
    """A value of a manifest for a message, however large it is."""
    if isinstance(value, (dict, list)):
        return f"{'an object' if isinstance(value, dict) else 'a list'} of {len(value)}"
    text = json.dumps(value) if not isinstance(value, int) or abs(value) < 10**60 else "a number"
    return text if len(text) <= 60 else f"{text[:60]}..."


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a snapshot, every value of the expected kind."""
    try:
        text = (folder / NAME).read_bytes()
    except OSError as error:
        raise StorageError(
            f"expected a snapshot directory with a {NAME}, found none at {str(folder)!r}: "
            "save one with Matcher.save(path)"
        ) from error
    try:
        manifest = json.loads(text)
        expect(manifest, {"format": str, "version": int}, "manifest")
        if manifest["format"] == FORMAT and manifest["version"] <= VERSION:
            return _checked(manifest)
    except (ValueError, RecursionError, FormatError) as error:
        problem = "nested too deeply" if isinstance(error, RecursionError) else error
        raise FormatError(
            f"{str(folder)!r} has a damaged {NAME}: {problem}; restore it from a copy or save it "
            "again"
        ) from error
    if manifest["format"] != FORMAT:
        raise FormatError(
            f"{str(folder)!r} has a damaged {NAME}, or that of another program: expected the "
            f"format {FORMAT}, found {shortened(manifest['format'])}"
        )
    raise FormatError(
        f"snapshot {str(folder)!r} has format version {manifest['version']}, this Matchwood reads "
        f"up to {VERSION}: upgrade Matchwood, or save the snapshot with this version"
    )


def _checked(manifest: dict[str, Any]) -> dict[str, Any]:
    if manifest.pop("checksum", None) != checksum(manifest):
        raise FormatError("its checksum does not fit")
    expect(manifest, SHAPE, "manifest")
    if manifest["version"] < OLDEST:
        raise FormatError(f"expected version {OLDEST} or later, found {manifest['version']}")
    if not GENERATION.fullmatch(manifest["generation"]):
        raise FormatError(
            "expected a generation with a name like g-0123456789ab, found "
            f"{shortened(manifest['generation'])}"
        )
    for name in (*manifest["files"], *manifest.get(BESIDE, ())):
        if not is_plain_name(name):
            raise FormatError(f"expected plain names of files, found {shortened(name)}")
    return manifest


def is_plain_name(name: str) -> bool:
    """Whether a name with .npy after it is a file in the same folder, on every system."""
    return bool(_FILE.fullmatch(name))


def write_manifest(
    folder: Path,
    generation: str,
    settings: dict[str, Any],
    files: dict[str, Any],
    extra_arrays: dict[str, Any],
) -> None:
    """Replace the manifest in one step; until then readers see the snapshot before."""
    manifest = {
        "format": FORMAT,
        "version": VERSION if "linked" in settings else OF_ONE_STORE,
        "generation": generation,
        "settings": settings,
        "files": files,
        BESIDE: extra_arrays,
    }
    replace_json(folder / NAME, folder / f"{generation}.json", manifest)


def replace_json(target: Path, aside: Path, data: dict[str, Any]) -> None:
    """Write data with its checksum to one file and rename that to another, on the disk."""
    text = json.dumps({**data, "checksum": checksum(data)})  # `dump` takes ten times as long
    with aside.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    aside.replace(target)
    sync(target.parent)


def checksum(manifest: dict[str, Any]) -> int:
    """The checksum of all other entries of a manifest."""
    return zlib.crc32(json.dumps(manifest, sort_keys=True).encode())


def sync(folder: Path) -> None:
    """Make names in a directory durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
