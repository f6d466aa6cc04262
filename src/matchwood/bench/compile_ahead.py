"""Compile all kernels before they are needed, in several processes.

Every process takes the next step of the exercise until none is left.  What another one has compiled
before is loaded, so that each kernel is compiled about once.

    compile_kernels()                             into this user's cache, for this machine's CPU
    compile_kernels("x86-64-v3", folder)          into a folder, for every CPU of a baseline
"""

from __future__ import annotations

import gc
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any

from matchwood.errors import MatchwoodError
from matchwood.kernel import store
from matchwood.kernel.cache import folder_name
from matchwood.kernel.compile_times import Compiled
from matchwood.kernel.cores import usable_cores

Advance = Callable[[int, int], None]
"""Called with the steps that are done, and their number."""

_WORKER = "from matchwood.bench.compile_ahead import work; work()"


def compile_kernels(
    baseline: str | None = None,
    folder: Path | None = None,
    *,
    steps: Sequence[str] | None = None,
    processes: int | None = None,
    advance: Advance | None = None,
    environment: dict[str, str] | None = None,
) -> list[Compiled]:
    """Run the exercise's steps, or some of them; returns what was compiled and not only loaded.

    folder       where code for a baseline is kept; the package's own unless given
    processes    as many as there are cores unless given
    """
    if baseline is not None and baseline not in store.baselines():
        known = ", ".join(store.baselines()) or "none"
        raise MatchwoodError(f"expected a baseline of this machine ({known}), found {baseline!r}")
    where: dict[str, str] = {}
    env = {**os.environ, "MATCHWOOD_QUIET": "1", **(environment or {})}
    if baseline is not None:
        shelf = (folder or Path(__file__).parents[1] / store.FOLDER) / baseline
        where = {"folder": str(shelf), "baseline": baseline}
        env.update(store.baseline_environment(baseline))
    run = _Run(list(_names() if steps is None else steps), advance)
    workers = [
        threading.Thread(target=run.drive, args=(where, env), daemon=True)
        for _ in range(min(processes or usable_cores(), len(run.waiting)))
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if run.failed:
        raise MatchwoodError(f"compiling failed: {run.failed[0]}")
    if baseline is not None:
        _prune(Path(where["folder"]))
        store.write_manifest(Path(where["folder"]), is_whole=steps is None)
    return run.compiled


def _prune(folder: Path) -> None:
    """Remove what was compiled from other sources; it would never be read again."""
    root = Path(__file__).parents[2]
    modules = [".".join(file.relative_to(root).with_suffix("").parts)
               for file in (root / "matchwood").rglob("*.py")]  # fmt: skip
    current = {folder_name(module) for module in modules if not module.endswith("__init__")}
    for each in folder.iterdir():
        if each.is_dir() and each.name not in current:
            shutil.rmtree(each)


def _names() -> list[str]:
    from matchwood.bench.exercise import steps

    return list(steps())


class _Run:
    """The steps that are not begun yet, and what the processes have reported."""

    def __init__(self, waiting: list[str], advance: Advance | None) -> None:
        self.waiting = waiting
        self.compiled: list[Compiled] = []
        self.failed: list[str] = []
        self._total = len(waiting)
        self._n_done = 0
        self._advance = advance
        self._lock = threading.Lock()

    def drive(self, where: dict[str, str], env: dict[str, str]) -> None:
        """Start a process and give it one step after the other."""
        with subprocess.Popen(  # noqa: S603 -- this very Python
            [sys.executable, "-c", _WORKER, json.dumps(where)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=env,
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            while (step := self._next()) is not None:
                answer = _ask(process.stdin, process.stdout, step)
                with self._lock:
                    if answer is None:
                        self.failed.append(f"the process that ran {step!r} ended; see above")
                        return
                    self.compiled += [Compiled(*each) for each in answer]
                    self._n_done += 1
                    if self._advance is not None:
                        self._advance(self._n_done, self._total)

    def _next(self) -> str | None:
        with self._lock:
            return self.waiting.pop(0) if self.waiting and not self.failed else None


def _ask(to: IO[str], answers: IO[str], step: str) -> list[Any] | None:
    """What a step compiled; None if the process is gone."""
    try:
        to.write(f"{step}\n")
        to.flush()
    except BrokenPipeError:
        return None
    line = answers.readline()
    return json.loads(line) if line else None


def work() -> None:
    """A process of `compile_kernels`: reads steps from stdin, writes what each compiled."""
    from matchwood.bench.exercise import steps
    from matchwood.kernel.compile_times import recorded

    where = json.loads(sys.argv[1])
    if where:
        store.compile_for(Path(where["folder"]), where["baseline"])
    known = steps()
    gc.freeze()  # compiling makes millions of objects, and the process ends soon
    gc.set_threshold(200_000, 20, 50)
    with recorded() as compiled:
        for line in sys.stdin:
            known[line.rstrip("\n")]()
            sys.stdout.write(json.dumps(compiled) + "\n")
            sys.stdout.flush()
            compiled.clear()
