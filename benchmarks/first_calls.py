"""How long the first calls of a process take, and whether any of them compiles.

    python benchmarks/first_calls.py [--strict]

Every call is made twice: by the first matcher of the process, and by a second one, for which all
kernels are loaded.  Seconds are those of the calling thread's CPU, which a busy machine changes
little; those of the clock are in brackets.  `--strict` ends with status 1 if a kernel was compiled,
a call took more than 0.5 s beyond its second time, or import to first match more than 1.2 s.
"""

import sys
import time

BEGAN = time.perf_counter()

from collections.abc import Callable, Iterator  # noqa: E402 - imports are part of what is measured

from matchwood import Matcher  # noqa: E402

BEYOND, FIRST_MATCH = 0.5, 1.2
N = 5_000
EVENT = {"a": 7, "b": 1, "s": "x"}


def trees() -> list[tuple[str, str]]:
    shape = "(a = {0} AND b > {1}) OR (s = 'word {0}' AND NOT a < {1})"
    return [(f"tree {i}", shape.format(i % 900, i % 13)) for i in range(N)]


def conjunctions() -> list[tuple[str, str]]:
    return [(f"and {i}", f"a = {i % 700} AND b BETWEEN {i % 9} AND {i % 9 + 4}") for i in range(N)]


def calls() -> Iterator[tuple[str, Callable[[], object]]]:
    """The calls of a new user, in turn, on a new matcher."""
    m = Matcher()
    yield "add", lambda: m.add("first", "a = 7 AND b < 3")
    yield "match", lambda: m.match(EVENT)
    many = trees()
    yield f"add {N:,} trees", lambda: m.add_many(many)
    yield "match", lambda: m.match(EVENT)
    more = conjunctions()
    yield f"add {N:,} conjunctions", lambda: m.add_many(more)
    yield "match", lambda: m.match(EVENT)
    yield "match 1,000", lambda: m.match_many([EVENT] * 1_000)
    yield "add one", lambda: m.add("late", "a = 7 AND s = 'x'")
    yield "remove one", lambda: m.remove("late")
    yield "add with a context", lambda: m.add("bound", "a < ctx.limit", context="ann")
    yield "set a context", lambda: m.set_context("ann", {"limit": 9})
    yield "match", lambda: m.match(EVENT)


def times() -> tuple[list[tuple[str, float, float]], tuple[float, float]]:
    """Name, CPU seconds and seconds of each call; and both clocks at the first match."""
    found, matched = [], (0.0, 0.0)
    for name, call in calls():
        began = time.thread_time(), time.perf_counter()
        call()
        ended = time.thread_time(), time.perf_counter()
        found.append((name, ended[0] - began[0], ended[1] - began[1]))
        if name == "match" and not matched[0]:
            matched = ended
    return found, matched


def main() -> int:
    cold, matched = times()
    warm, _ = times()
    from matchwood.kernel.jit import compile_count
    from matchwood.kernel.store import shelves

    print(f"{'call':24}{'first s':>9}{'again s':>9}")
    is_late = False
    for (name, first, clock), (_, again, _) in zip(cold, warm, strict=True):
        is_late |= first - again > BEYOND
        print(f"{name:24}{first:9.3f}{again:9.3f}   ({clock:.3f})")
    print(f"import to first match {matched[0]:.2f} s ({matched[1] - BEGAN:.2f})")
    used = ", ".join(each.baseline for each in shelves()) or "no baseline"
    print(f"compiled {compile_count()}; kernels for {used}")
    failed = compile_count() > 0 or is_late or matched[0] > FIRST_MATCH
    return int(failed and "--strict" in sys.argv)


if __name__ == "__main__":
    sys.exit(main())
