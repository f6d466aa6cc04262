"""Where compiled kernels are kept between processes, and how they are read back.

A cached kernel is machine code inside a pickle: reading it runs it.  So it is read only from a
folder that no other user can write to, and only when its checksum fits:

    NUMBA_CACHE_DIR/kernels              where that is set: the caller vouches for it
    matchwood/__pycache__/kernels        beside the package, no more open than the package itself
    ~/.cache/matchwood/kernels           (XDG_CACHE_HOME) owned by this user, closed to others
    nowhere                              compile in each process

Everything that can go wrong with a cache means "compile again": a file that is missing, cut or
altered, of another version, or of a class that has moved; a full disk when writing.

Numba's own cache looks only at the file a function stands in: edit a kernel that another file's
kernel calls and the caller keeps running the old code.  A stale kernel is a wrong answer, so a
folder here is named after the sources of a file *and of every Matchwood file it imports*.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import re
import stat
import sys
from contextlib import suppress
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from numba.core.caching import (
    CompileResultCacheImpl,
    FunctionCache,
    IndexDataCacheFile,
    _CacheLocator,
)

_PACKAGE = Path(__file__).parents[1]
_IMPORT = re.compile(r"^from matchwood\.([\w.]+) import", re.MULTILINE)
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_DIGEST = hashlib.sha256().digest_size


def keep_on_disk(compiled: Any) -> None:
    """Give a compiled function a cache on disk, where there is a folder to trust."""
    function = getattr(compiled, "py_func", None)
    if function is not None and cache_root() is not None:  # else nothing compiles, or no folder
        compiled._cache = KernelCache(function)


# -- the folder ------------------------------------------------------------------------------------


@cache
def cache_root() -> Path | None:
    """The folder of all kernels; None where no folder can be trusted."""
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    if chosen:
        return Path(chosen) / "kernels"
    return _beside_package(_PACKAGE) or _of_user(_user_cache())


def _beside_package(package: Path) -> Path | None:
    """A folder in the package's __pycache__, if it is as hard to write to as the package.

    The sources beside it are run as well: what could be changed by another user there is not less
    safe here.
    """
    try:
        source = package.stat()
        owners = {source.st_uid, _uid(), 0}
        folder = package
        for name in ("__pycache__", "kernels"):
            folder /= name
            _make(folder, 0o755)
            if not _is_closed(folder, owners, source.st_mode & _OTHERS_WRITE):
                return None
        return folder if os.access(folder, os.W_OK) else None
    except OSError:  # the package is in a zip file, or belongs to another user
        return None


def _of_user(home: Path | None) -> Path | None:
    """A folder in the user's cache that only this user can write to, replace or rename."""
    if home is None:
        return None
    try:
        missing = [each for each in (home, *home.parents) if not each.exists()]
        for each in reversed(missing):
            _make(each, 0o700)
        folder = home.resolve(strict=True)
        if not all(_is_path_closed(each) for each in (folder, *folder.parents)):
            return None
        for name in ("matchwood", "kernels"):
            folder /= name
            _make(folder, 0o700)
            if not _is_closed(folder, {_uid()}, 0):
                return None
        return folder if os.access(folder, os.W_OK) else None
    except OSError:
        return None


def _user_cache() -> Path | None:
    chosen = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if chosen.is_absolute():
        return chosen
    try:
        return Path.home() / ".cache"
    except RuntimeError:  # a user without a home
        return None


def _make(folder: Path, mode: int) -> None:
    with suppress(FileExistsError):
        folder.mkdir(mode)


def _uid() -> int:
    return os.getuid() if hasattr(os, "getuid") else 0  # every owner is 0 on Windows


def _is_closed(folder: Path, owners: set[int], allowed: int) -> bool:
    """Whether a path is a real folder of one of these owners, and no other user can write to it."""
    found = folder.lstat()
    others = found.st_mode & _OTHERS_WRITE & ~allowed if hasattr(os, "getuid") else 0
    return stat.S_ISDIR(found.st_mode) and found.st_uid in owners and not others


def _is_path_closed(folder: Path) -> bool:
    """Whether no other user (but root) can rename what lies in a folder on the way."""
    return _is_closed(folder, {_uid(), 0}, _OTHERS_WRITE if _is_sticky(folder) else 0)


def _is_sticky(folder: Path) -> bool:
    """Whether names in a shared folder can be changed only by their owners, as in /tmp."""
    return bool(folder.lstat().st_mode & stat.S_ISVTX)


def cache_folder(module: str) -> Path:
    """The folder for one module's kernels, named after all that they are made of."""
    digest = hashlib.sha256()
    for name in sorted(sources_of(module, set())):
        digest.update(name.encode())
        digest.update(source_of(name))
    root = cache_root()
    assert root is not None, "only asked for with a folder to trust"
    return root / f"{module.rpartition('.')[2]}-{digest.hexdigest()[:16]}"


def sources_of(module: str, seen: set[str]) -> set[str]:
    """A module and every Matchwood module it imports, directly or not."""
    if module not in seen:
        seen.add(module)
        for imported in _IMPORT.findall(source_of(module).decode()):
            sources_of(f"matchwood.{imported}", seen)
    return seen


@cache
def source_of(module: str) -> bytes:
    """The text of a module, also of one in a zip file."""
    package, _, path = module.partition(".")
    if package == "matchwood" and path:
        *folders, name = path.split(".")
        folder = files("matchwood").joinpath(*folders)
        for candidate in (folder.joinpath(f"{name}.py"), folder.joinpath(name, "__init__.py")):
            if candidate.is_file():
                return candidate.read_bytes()
    file = getattr(sys.modules.get(module), "__file__", None)
    return Path(file).read_bytes() if file else module.encode()


# -- what Numba asks for -------------------------------------------------------------------------


class _Locator(_CacheLocator):  # type: ignore[misc]
    """Numba's word for a function's place on disk."""

    def __init__(self, function: Any, file: str) -> None:
        self._py_file = file  # read by Numba's warnings
        self._folder = cache_folder(function.__module__)
        self._line = function.__code__.co_firstlineno

    def ensure_cache_path(self) -> None:
        root = self._folder.parent
        if not root.is_dir():  # NUMBA_CACHE_DIR, before its first use
            root.mkdir(parents=True, exist_ok=True)
        _make(self._folder, 0o755)

    def get_cache_path(self) -> str:
        return str(self._folder)

    def get_source_stamp(self) -> str:
        return self._folder.name

    def get_disambiguator(self) -> str:
        return str(self._line)

    @classmethod
    def from_function(cls, function: Any, file: str) -> _Locator:
        return cls(function, file)


class _Implementation(CompileResultCacheImpl):  # type: ignore[misc]
    _locator_classes = (_Locator,)


class _CacheFile(IndexDataCacheFile):  # type: ignore[misc]
    """Numba's index and data files, each behind a checksum, each entry with its key.

    Two processes that compile at once may give one number to two entries: the key tells.
    """

    def load(self, key: Any) -> Any:
        name = self._load_index().get(key)
        kept = None if name is None else _read(Path(self._data_path(name)))
        return kept[1] if isinstance(kept, tuple) and kept[0] == key else None

    def save(self, key: Any, data: Any) -> None:
        super().save(key, (key, data))

    def _load_index(self) -> dict[Any, str]:
        kept = _read(Path(self._index_path))
        if isinstance(kept, tuple) and kept[:2] == (self._version, self._source_stamp):
            return dict(kept[2])
        return {}

    def _save_index(self, overloads: dict[Any, str]) -> None:
        with self._open_for_write(self._index_path) as file:
            file.write(self._dump((self._version, self._source_stamp, overloads)))

    def _dump(self, obj: Any) -> bytes:
        data: bytes = super()._dump(obj)
        return hashlib.sha256(data).digest() + data


def _read(path: Path) -> Any:
    """The object in a file; None if there is none, or it is not what was written."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    digest, data = content[:_DIGEST], content[_DIGEST:]
    if hashlib.sha256(data).digest() != digest:
        return None
    try:
        return pickle.loads(data)  # noqa: S301 -- from a folder that only this user can write to
    except Exception:  # noqa: BLE001 -- of a class that has moved: a pickle may raise anything
        return None


class KernelCache(FunctionCache):  # type: ignore[misc]
    """A function's cache that never fails: what cannot be read or written is compiled again."""

    _impl_class = _Implementation

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        stamp = self._impl.locator.get_source_stamp()
        self._cache_file: Any = _CacheFile(self._cache_path, self._impl.filename_base, stamp)

    def _load_overload(self, signature: Any, context: Any) -> Any:
        try:
            return super()._load_overload(signature, context)
        except Exception:  # noqa: BLE001 -- code that this Numba cannot load: it compiles again
            return None

    def _save_overload(self, signature: Any, data: Any) -> None:
        with suppress(OSError):  # a full or read-only disk
            super()._save_overload(signature, data)
