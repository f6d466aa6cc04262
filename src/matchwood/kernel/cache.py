"""Where compiled kernels are kept between processes, and how they are read back.

A kept kernel is machine code inside a pickle: reading it runs it.  So it is read only from the
package itself or from a folder that no other user can write to, and only when its checksum fits:

    matchwood/_compiled/BASELINE         compiled ahead, read only (store.py)
    NUMBA_CACHE_DIR/kernels              where that is set: the user has chosen it
    matchwood/__pycache__/kernels        beside the package, no more open than the package itself
    ~/.cache/matchwood/kernels           (XDG_CACHE_HOME) owned by this user, closed to others
    nowhere                              compile in each process

Everything that can go wrong with a cache means "compile again": a file that is missing, cut or
altered, of another version, or of a class that has moved; a full disk when writing.

Numba's own cache looks only at the file a function stands in: edit a kernel that another file's
kernel calls and the caller keeps running the old code.  A stale kernel is a wrong answer, so a
folder here is named after the sources of a file *and of every Matchwood file it imports*.

Numba's own cache numbers the files of a function in an index, and of two processes that write it
at once one loses its entry.  Here a file is named after its key, so that many can compile at once.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import re
import stat
import sys
import uuid
from contextlib import suppress
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from numba.core.caching import _Cache
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps

from matchwood.kernel import store
from matchwood.kernel.deferred import NotCompiledError, is_deferred

_PACKAGE = Path(__file__).parents[1]
_IMPORT = re.compile(r"^from matchwood\.([\w.]+) import", re.MULTILINE)
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_KEEPING = {"matchwood.kernel.cache", "matchwood.kernel.deferred", "matchwood.kernel.store"}
"""They say where code is kept and when it is made, not what it is; folders ignore their text."""
_DIGEST = hashlib.sha256().digest_size


def keep_on_disk(compiled: Any) -> None:
    """Let a compiled function be loaded from the package or the cache, and be kept there."""
    function = getattr(compiled, "py_func", None)
    if function is not None:  # else nothing compiles
        compiled._cache = KernelCache(compiled, function)


# -- the folder ------------------------------------------------------------------------------------


@cache
def cache_root() -> Path | None:
    """The folder of all kernels; None where no folder can be trusted."""
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    if chosen:
        return Path(chosen) / "kernels"
    return folder_in_package(_PACKAGE) or folder_of_user(_user_cache())


def folder_in_package(package: Path) -> Path | None:
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


def folder_of_user(home: Path | None) -> Path | None:
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


@cache
def folder_name(module: str) -> str:
    """The folder of one module's kernels, named after all that they are made of."""
    digest = hashlib.sha256()
    for name in sorted(sources_of(module, set())):
        digest.update(name.encode())
        digest.update(source_of(name))
    return f"{module.rpartition('.')[2]}-{digest.hexdigest()[:16]}"


def sources_of(module: str, seen: set[str]) -> set[str]:
    """A module and every Matchwood module it imports, directly or not."""
    if module not in seen | _KEEPING:
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


class KernelCache(_Cache):  # type: ignore[misc]
    """A function's cache that never fails: what cannot be read or written is compiled again."""

    def __init__(self, dispatcher: Any, function: Any) -> None:
        self._dispatcher = dispatcher
        self._folder = folder_name(function.__module__)
        name = re.sub(r"[^\w.]", "", function.__qualname__)
        self._name = f"{name}-{function.__code__.co_firstlineno}"
        self._code = hashlib.sha256(function.__code__.co_code).hexdigest()
        self._is_enabled = function.__closure__ is None  # cells are no part of the key

    @property
    def cache_path(self) -> str | None:
        root = cache_root()
        return None if root is None else str(root / self._folder)

    def enable(self) -> None:
        self._is_enabled = True

    def disable(self) -> None:
        self._is_enabled = False

    def flush(self) -> None:
        """Numba's word for emptying; entries of other sources are never read, so nothing to do."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        if not self._is_enabled:
            return None
        target_context.refresh()
        kept = self._kept(sig, target_context.codegen())
        if kept is not None:
            with suppress(Exception):  # code that this Numba cannot load: it compiles again
                return CompileResult._rebuild(target_context, *kept)
        if is_deferred():
            raise NotCompiledError(self._dispatcher, sig)
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        if not self._is_enabled or data.library.has_dynamic_globals:
            return
        goal = store.target()
        if goal is None:
            root, cpu = cache_root(), data.codegen.magic_tuple()
        else:
            root, cpu = goal.folder, goal.baseline
        if root is not None:
            key = self._key(sig, cpu)
            with suppress(OSError):  # a full or read-only disk
                _write(root / self._folder, self._file(key), (key, data._reduce()))

    def _kept(self, sig: Any, codegen: Any) -> Any:
        goal = store.target()
        if goal is not None:
            return self._entry(sig, goal.baseline, goal.folder)
        for shelf in store.shelves():
            key = self._key(sig, shelf.baseline)
            found = _unpack(key, shelf.read(f"{self._folder}/{self._file(key)}"))
            if found is not None:
                return found
        root = cache_root()
        return None if root is None else self._entry(sig, codegen.magic_tuple(), root)

    def _entry(self, sig: Any, cpu: Any, root: Path) -> Any:
        key = self._key(sig, cpu)
        try:
            content = (root / self._folder / self._file(key)).read_bytes()
        except OSError:
            return None
        return _unpack(key, content)

    def _key(self, sig: Any, cpu: Any) -> tuple[Any, ...]:
        return (sig, cpu, self._code, store.made_with())

    def _file(self, key: tuple[Any, ...]) -> str:
        return f"{self._name}.{hashlib.sha256(str(key).encode()).hexdigest()[:16]}.nbc"


def _unpack(key: tuple[Any, ...], content: bytes | None) -> Any:
    """What is kept under a key; None if there is none, or it is not what was written."""
    if content is None:
        return None
    digest, data = content[:_DIGEST], content[_DIGEST:]
    if hashlib.sha256(data).digest() != digest:
        return None
    try:
        kept = pickle.loads(data)  # noqa: S301 -- from the package, or a folder of this user alone
    except Exception:  # noqa: BLE001 -- of a class that has moved: a pickle may raise anything
        return None
    return kept[1] if isinstance(kept, tuple) and kept[0] == key else None


def _write(folder: Path, name: str, kept: Any) -> None:
    """Write a file under a temporary name and rename it, so that a reader sees all of it."""
    if not folder.parent.is_dir():  # NUMBA_CACHE_DIR, before its first use
        folder.parent.mkdir(parents=True, exist_ok=True)
    _make(folder, 0o755)
    data: bytes = dumps(kept)
    temporary = folder / f"{name}.{uuid.uuid4().hex[:16]}"
    try:
        temporary.write_bytes(hashlib.sha256(data).digest() + data)
        temporary.replace(folder / name)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
