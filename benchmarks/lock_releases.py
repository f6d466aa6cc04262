"""How often a search, and a batch of changes, give up the interpreter's lock.

Each time another thread may take it, and getting it back may last as long as a switch interval.
Counts calls of PyEval_SaveThread by compiled modules, with a library of a few lines of C that is
loaded before all others: needs Linux, a C compiler and a Python with a shared library.

    python benchmarks/lock_releases.py
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from random import Random

import matchwood as mw

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))

from live_service import BATCH, change, offer, text_of

COUNTING = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
static __thread long n;
void *PyEval_SaveThread(void) {
    static void *(*next)(void);
    if (!next) next = (void *(*)(void)) dlsym(RTLD_NEXT, "PyEval_SaveThread");
    n++;
    return next();
}
long n_released(void) { return n; }
"""
SUBSCRIPTIONS, WARM, ROUNDS = 20_000, 40, 200


def measure(n_released: Callable[[], int]) -> None:
    """Print the mean of each, after what is loaded once was loaded."""
    rng = Random(1)
    matcher = mw.Matcher()
    matcher.add_many([(i, text_of(i)) for i in range(SUBSCRIPTIONS)])
    totals = {f"a batch of {BATCH} changes": 0, "the first search after it": 0, "a search": 0}
    for number in range(WARM + ROUNDS):
        counts = [n_released()]
        with matcher.batch() as batch:
            change(batch, SUBSCRIPTIONS, number)
        counts.append(n_released())
        for _ in range(2):
            matcher.match(offer(rng))
            counts.append(n_released())
        for _ in range(10):
            matcher.match(offer(rng))
        if number >= WARM:
            for name, before, after in zip(totals, counts, counts[1:], strict=False):
                totals[name] += after - before
    for name, total in totals.items():
        print(f"{name}: {total / ROUNDS:.1f}")


def main() -> None:
    """Run again with the counting library in front."""
    if "LOCK_RELEASES" in os.environ:
        measure(ctypes.PyDLL(os.environ["LOCK_RELEASES"]).n_released)
        return
    with tempfile.TemporaryDirectory() as home:
        source, library = Path(home, "count.c"), Path(home, "count.so")
        source.write_text(COUNTING)
        subprocess.run(
            [shutil.which("cc") or "cc", "-shared", "-fPIC", "-o", library, source, "-ldl"],
            check=True,
        )
        found = {"LOCK_RELEASES": str(library), "LD_PRELOAD": str(library)}
        subprocess.run([sys.executable, __file__], env=os.environ | found, check=True)


if __name__ == "__main__":
    main()
