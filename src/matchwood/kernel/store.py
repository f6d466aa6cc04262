"""Kernels that were compiled ahead, kept in the package and read only.

    matchwood/_compiled/x86-64-v3/manifest.json     what they were made with, whether they are all
                                                    that there are; SHA-256 of every file
    matchwood/_compiled/x86-64-v3/FOLDER/KERNEL     named as in the cache (cache.py)

A baseline is a set of CPU instructions that many machines share: code for it runs on every CPU that
offers them.  Of the baselines in the package those that this CPU offers are looked at, best first;
MATCHWOOD_BASELINE=x86-64-v2 leaves one of them alone, as for the same code on unlike machines.  The
package may also be a zip file, as Spark sends it.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import sys
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

_V2 = ("cx16", "popcnt", "sahf", "sse3", "sse4.1", "sse4.2", "ssse3")
_V3 = (*_V2, "avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave")

BASELINES: dict[str, dict[str, tuple[str, ...]]] = {
    "x86_64": {"x86-64-v3": _V3, "x86-64-v2": _V2},
    "aarch64": {"generic": ()},
}
"""By machine: its baselines, best first, each with the CPU features that it needs."""

FOLDER = "_compiled"
MANIFEST = "manifest.json"
CHOICE = "MATCHWOOD_BASELINE"
"""The variable that names the one baseline to use."""

IS_CHECKED = os.environ.get("MATCHWOOD_CHECKED") == "1"
"""Whether kernels of this process raise IndexError for an index outside an array.

For tests: an index that is negative or too large otherwise reads or writes other memory.
"""


class Target(NamedTuple):
    """Where this process puts what it compiles, and for which baseline."""

    folder: Path
    baseline: str


class Shelf(NamedTuple):
    """The kernels of one baseline in the package."""

    baseline: str
    folder: Any  # importlib's Traversable: a folder, or a part of a zip file
    sums: dict[str, str]  # file -> SHA-256
    is_whole: bool = True  # all kernels, not only those of some steps

    def read(self, name: str) -> bytes | None:
        """The content of a file; None if there is none, or it is not what the manifest says."""
        expected = self.sums.get(name)
        if expected is None:
            return None
        try:
            content: bytes = self.folder.joinpath(*name.split("/")).read_bytes()
        except OSError:
            return None
        return content if hashlib.sha256(content).hexdigest() == expected else None


_target: Target | None = None


def compile_for(folder: Path, baseline: str) -> None:
    """Keep what this process compiles in a folder, as code for a baseline, from now on.

    Numba itself gets the baseline from `baseline_environment`, before it is imported.
    """
    global _target
    _target = Target(folder, baseline)


def target() -> Target | None:
    return _target


def baselines() -> tuple[str, ...]:
    """The baselines of this kind of machine, best first."""
    return tuple(BASELINES.get(platform.machine().replace("AMD64", "x86_64"), ()))


def best_baseline() -> str | None:
    """The best baseline that this CPU offers; None on a kind of machine without baselines."""
    return next(filter(cpu_offers, baselines()), None)


def baseline_environment(baseline: str) -> dict[str, str]:
    """What makes Numba compile for a baseline instead of this machine's CPU."""
    features = next(each[baseline] for each in BASELINES.values() if baseline in each)
    # Not empty: without features Numba adds those of this machine.
    listed = ",".join(f"+{feature}" for feature in features)
    return {"NUMBA_CPU_NAME": baseline, **({"NUMBA_CPU_FEATURES": listed} if listed else {})}


@cache
def made_with() -> tuple[str, ...]:
    """What compiled code depends on besides its source and the CPU."""
    return (
        sys.implementation.cache_tag or sys.version,
        f"numba {version('numba')}",
        f"llvmlite {version('llvmlite')}",
        *(["checked indexes"] if IS_CHECKED else []),
    )


def write_manifest(folder: Path, is_whole: bool = True) -> int:
    """List what is in the folder of a baseline; returns the number of files."""
    sums = {
        str(file.relative_to(folder).as_posix()): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(folder.rglob("*.nbc"))
    }
    manifest = {"made_with": made_with(), "is_whole": is_whole, "files": sums}
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=0))
    return len(sums)


@cache
def shelves() -> tuple[Shelf, ...]:
    """The kernels in the package that this process can use, best first."""
    chosen = os.environ.get(CHOICE)
    return tuple(
        Shelf(baseline, folder, manifest["files"], manifest.get("is_whole", True))
        for baseline, folder, manifest in _found()
        if tuple(manifest["made_with"]) == made_with()
        and cpu_offers(baseline)
        and chosen in (None, "", baseline)
    )


@cache
def unfit() -> str | None:
    """Why no kernels of the package can be used; None where there are none, or some can."""
    found = _found()
    if not found or shelves():
        return None
    others = {tuple(manifest["made_with"]) for _, _, manifest in found} - {made_with()}
    if others:
        return f"the package's own are for {', '.join(sorted(others)[0])}"
    chosen = os.environ.get(CHOICE)
    wanted = f", {CHOICE} is {chosen}" if chosen else ""
    return f"the package's own are for {' and '.join(each for each, _, _ in found)}{wanted}"


@cache
def _found() -> list[tuple[str, Any, dict[str, Any]]]:
    """Baseline, folder and manifest of all kernels in the package."""
    found = []
    for baseline in baselines():
        folder = files("matchwood").joinpath(FOLDER, baseline)
        try:
            manifest = json.loads(folder.joinpath(MANIFEST).read_text())
        except (OSError, ValueError):  # none, or not whole
            continue
        found.append((baseline, folder, manifest))
    return found


@cache
def cpu_offers(baseline: str) -> bool:
    """Whether code for a baseline runs on this CPU."""
    from llvmlite import binding

    offered = binding.get_host_cpu_features()
    needed = BASELINES[platform.machine().replace("AMD64", "x86_64")][baseline]
    return all(offered.get(feature, False) for feature in needed)
