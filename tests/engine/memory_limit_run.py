"""Run by test_memory_limit.py in a process of its own: change a matcher until memory is used up.

    python memory_limit_run.py INDEX MEGABYTES

Prints the number of MemoryErrors, then "equal" when the matcher still holds what it acknowledged.
"""

from __future__ import annotations

import ctypes
import gc
import resource
import sys
from contextlib import suppress
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import matchwood as mw
from naive import matches

N, FIRST, BATCH = 40_000, 2_000, 400


def text(i: int) -> str:
    if i % 3:
        return f"a{i % 37} = {i % 11} AND b >= {i % 97} AND s{i % 5} = 'v{i % 501}'"
    return f"(a{i % 37} = {i % 11} OR b < {i % 50}) AND NOT c = {i % 7}"


def warmed(index: str) -> mw.Matcher:
    """A matcher, after every kind of change: compiling under a memory limit would abort."""
    for n in (6_000, FIRST):  # as a segment, and as changes in place
        m = mw.Matcher(index)
        m.add_many([(i, text(i)) for i in range(n)])
        for i in range(n, n + 300):
            m.add(i, text(i))
            if i % 7 == 0:
                m.remove(i)
        m.add_many([(i, text(i)) for i in range(n + 300, n + 300 + BATCH)])
        m.match_many([{"b": 3}, {"a1": 1, "s1": "v1"}])
        m.remove_many(range(n - 500))
        m.compact()
    m = mw.Matcher(index)
    m.add_many([(i, text(i)) for i in range(FIRST)])
    return m


def change_until_full(m: mw.Matcher, held: bytearray) -> int:
    """Add and remove; `held` says what was acknowledged.  Returns the number of MemoryErrors."""
    n_errors, i = 0, FIRST
    batch = [(0, "")] * BATCH
    while n_errors < 6 and i + BATCH < N:
        try:
            if i % 1_000 == 0:
                for k in range(BATCH):
                    batch[k] = (i + k, text(i + k))
                m.add_many(batch, processes=1)
                for k in range(BATCH):
                    held[i + k] = 1
                i += BATCH
            m.add(i, text(i))
            held[i] = 1
            i += 1
            if i % 7 == 0:
                m.remove(i - 1)
                held[i - 1] = 0
        except (MemoryError, SystemError):  # Python 3.11 forgets to say why a frame has no room
            n_errors += 1
            i += 1_000 - i % 1_000
    return n_errors


def main(index: str, megabytes: float) -> None:
    m = warmed(index)
    held = bytearray(N)
    held[:FIRST] = b"\1" * FIRST
    gc.collect()
    with suppress(AttributeError, OSError):  # what warming up has freed, where the C library can
        ctypes.CDLL(None).malloc_trim(0)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + int(megabytes * 2**20), -1))
    n_errors = change_until_full(m, held)
    resource.setrlimit(resource.RLIMIT_AS, (-1, -1))
    expected = [i for i in range(N) if held[i]]
    assert [i for i in range(N) if i in m] == expected
    trees = {i: mw.parse(text(i)) for i in expected}
    for j in range(0, 60, 4):
        event = {f"a{j % 37}": j % 11, "b": j % 97, f"s{j % 5}": f"v{j % 501}", "c": j % 3}
        assert m.match(event) == [i for i, tree in trees.items() if matches(tree, event)]
    print(n_errors, "equal")


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
