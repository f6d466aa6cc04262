"""Surroundings: what a result must tell so that it can be understood later.

Versions, processor and commit; never a path, a user or a host.
"""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PACKAGES = ("matchwood", "numba", "numpy", "pyarrow")


def circumstances(started: datetime) -> dict[str, Any]:
    """What every result file says about its run."""
    return {
        "started": started.isoformat(timespec="seconds"),
        "versions": versions(),
        "machine": machine(),
        "commit": commit(),
    }


def versions() -> dict[str, str]:
    return {"python": platform.python_version(), **{name: _version(name) for name in PACKAGES}}


def machine() -> dict[str, str | int]:
    return {
        "cpu": _cpu_model(),
        "cores": os.cpu_count() or 1,
        "system": f"{platform.system()} {platform.machine()}",
    }


def commit() -> str | None:
    """The commit of the code, `+` when it was changed since; None outside a checkout."""
    here = Path(__file__)
    if _git("ls-files", "--error-unmatch", here.name) is None:
        return None  # installed below some other project: its commit says nothing about us
    head = _git("rev-parse", "HEAD")
    changed = _git("status", "--porcelain", "--untracked-files=no", "--", str(here.parents[1]))
    return None if head is None else head + ("+" if changed else "")


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    for line in lines:
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _git(*arguments: str) -> str | None:
    try:
        done = subprocess.run(  # noqa: S603 - fixed arguments, no shell
            ["git", *arguments],  # noqa: S607 - the user's own git
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            check=False,
            timeout=10,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
