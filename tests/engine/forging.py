"""Forged snapshots: every array changed in every way, with checksums that fit."""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import resource
import shutil
import signal
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import matchwood as mw
from matchwood.engine.snapshots.manifest import checksum

SECONDS = 30
"""After which a child counts as hanging."""


def seal(path: Path) -> None:
    """Write sizes and checksums of all files as they are into the manifest."""
    manifest = json.loads((path / "manifest.json").read_text())
    generation = path / manifest["generation"]
    manifest["files"] = {
        file.stem: {"bytes": file.stat().st_size, "crc32": zlib.crc32(file.read_bytes())}
        for file in sorted(generation.glob("*.npy"))
    }
    manifest.pop("checksum")
    manifest["checksum"] = checksum(manifest)
    (path / "manifest.json").write_text(json.dumps(manifest))


def forgeries(array: np.ndarray, seed: int) -> Iterator[tuple[str, np.ndarray]]:
    """Arrays like this one, but not it."""
    numbers = np.random.default_rng(seed)
    yield "empty", array[:0]
    yield "shorter", array[: len(array) // 2]
    yield "one less", array[:-1]
    yield "longer", np.concatenate([array, array[-3:], array[:3]])
    yield "wider", array.astype(np.int64 if array.dtype != np.int64 else np.int32)
    yield "float", array.astype(np.float64 if array.dtype != np.float64 else np.float32)
    yield "swapped bytes", array.astype(array.dtype.newbyteorder())
    yield "text", np.array(["x"] * max(1, len(array)))
    yield "two dimensions", array.reshape(1, *array.shape)
    if not array.size:
        yield "something", np.zeros((4, *array.shape[1:]), array.dtype)
        return
    if array.dtype.kind == "f":
        yield "nan", np.full_like(array, np.nan)
        return
    limits = np.iinfo(array.dtype)
    for value in (
        0,
        1,
        -1,
        limits.min,
        limits.max,
        len(array),
        2 * len(array),
        int(array.max()) + 1,
    ):
        yield f"all {value}", np.full_like(array, np.clip(value, limits.min, limits.max))
    for share in (1.0, 0.1, 0.001):
        changed = array.copy()
        chosen = numbers.random(array.shape) < max(share, 1.5 / array.size)
        wide = numbers.integers(limits.min, limits.max, array.shape, array.dtype, endpoint=True)
        changed[chosen] = wide[chosen]
        yield f"{share} anything", changed
        near = numbers.integers(int(array.min()), int(array.max()) + 1, array.shape)
        changed = array.copy()
        changed[chosen] = near.astype(array.dtype)[chosen]
        yield f"{share} in range", changed
    for value in (-1, limits.min, limits.max):
        changed = array.copy()
        changed.flat[numbers.integers(array.size)] = np.clip(value, limits.min, limits.max)
        yield f"one {value}", changed
    yield "shuffled", numbers.permutation(array.ravel()).reshape(array.shape)
    yield "reversed", np.ascontiguousarray(array[::-1])
    yield "more", array + np.ones(1, array.dtype)


class Forger:
    """A saved snapshot, of which copies are forged, and used in children that may die."""

    def __init__(self, matcher: mw.Matcher, folder: Path, events: list, more: list) -> None:
        self.path, self.copy = folder / "good", folder / "forged"
        self.events, self.more = events, more
        matcher.save(self.path)
        self.ids = matcher.arrow_ids().to_pylist()
        self.use(self.path)  # compiles in this process, for all children
        shutil.copytree(self.path, self.copy)
        self.files = sorted(self.copy.glob("g-*/*.npy"))

    def use(self, path: Path) -> None:
        """Everything that reads or changes what was loaded; wrong answers are not looked at."""
        matcher = mw.Matcher.load(path)
        verbs = [
            lambda: matcher.match_many(self.events),
            lambda: [matcher.match(event) for event in self.events[:9]],
            lambda: matcher.set_context("user-1", {"limit": 30}),
            lambda: matcher.add_many(self.more),
            lambda: matcher.match_many(self.events),
            lambda: matcher.remove_many(self.ids[::3]),
            lambda: matcher.match_many(self.events),
            lambda: [matcher.remove(id_) for id_ in self.ids[1:30:3]],
            lambda: [matcher.replace(id_, self.more[id_][1]) for id_ in self.ids[2:30:3]],
            lambda: matcher.match_many(self.events),
            lambda: matcher.stats(),
            lambda: matcher.remove_many(self.ids[31::3]),
            lambda: matcher.match_many(self.events),
        ]
        for verb in verbs:
            with contextlib.suppress(Exception):
                verb()

    def outcomes(self, file: Path, seed: int, share: float) -> list[str]:
        """What is wrong with how forgeries of an array ended: crashes, hangs, other errors."""
        good = np.load(file)
        problems = []
        chosen = random.Random(seed)
        for name, forged in forgeries(good, seed):
            if chosen.random() > share:
                continue
            np.save(file, forged)
            seal(self.copy)
            problem = self._child()
            if problem:
                problems.append(f"{file.stem}, {name}: {problem}")
        np.save(file, good)
        return problems

    def _child(self) -> str:
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reader)
            os.write(writer, self._report().encode()[:2000])
            os._exit(0)
        os.close(writer)
        _, status = os.waitpid(child, 0)
        said = os.read(reader, 2000).decode()
        os.close(reader)
        if os.WIFSIGNALED(status):
            number = os.WTERMSIG(status)
            return "hangs" if number == signal.SIGALRM else f"killed by signal {number}"
        return said

    def _report(self) -> str:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(SECONDS)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        try:
            with contextlib.redirect_stderr(io.StringIO()):
                self.use(self.copy)
        except mw.FormatError:
            return ""
        except BaseException as error:  # noqa: BLE001 - whatever it is, it is not a FormatError
            return f"{type(error).__name__}: {error}"
        return ""
