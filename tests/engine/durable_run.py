"""A process that changes a durable matcher until it is killed, and tells what was acknowledged.

    python -m engine.durable_run FOLDER KIND   one number per line on stdin

    contexts   subscriptions with contexts: one store that changes in place
    segments   none of them: small segments, which are merged and written in the background
    group      as segments, with changes written in groups; acknowledged by `flush`

Change number i is the same in every run: `change(matcher, i)` carries it out, `expected(model, i)`
says what it does to a plain dict.
"""

from __future__ import annotations

import os
import sys
import tempfile
from typing import Any

import matchwood as mw
from matchwood.engine.durable import checkpoint
from matchwood.engine.segments import tiers

GROUP = 5
"""Changes between two calls of `flush`."""

Model = dict[str, tuple[str, int, str | None]]
"""Text, priority and context by id, in the order of addition."""


def steps(i: int, kind: str) -> list[tuple[Any, ...]]:
    """What change number i does."""
    is_bound = kind == "contexts"
    other = ("x < ctx.c", 0, f"k{i % 2}") if is_bound else (f"x < {i % 9}", 0, None)
    next_ = ("set", f"k{i % 2}", i) if is_bound else ("replace", f"t{i - 1}", "x > 3", 2, None)
    add = ("add", f"s{i}", f"x >= {i % 13} AND y = {i % 3}", i % 5, None)
    return [
        [add],
        [("replace", f"s{i - 1}", f"x = {i % 7} OR y = 1", -i, None)],
        [add, ("add", f"t{i}", *other)],
        [next_],
        [("remove", f"s{i - 4}"), add],
        [("remove", f"s{i - 1}"), ("add", f"s{i - 1}", f"y = {i}", 1, None)],
        [("remove", f"t{i - 4}")],
        [("add", f"{verb}{i}", f"x = {i}", 0, None) for verb in "abc"],
    ][i % 8]


def change(m: mw.Matcher, i: int, kind: str) -> None:
    if i % 29 == 28:
        m.checkpoint()
    todo = steps(i, kind)
    if i % 8 == 7:
        m.add_many([(id_, text) for _, id_, text, *_ in todo])
        return
    with m.batch() as b:
        for verb, id_, *more in todo:
            if verb == "set":
                b.set_context(id_, {"c": more[0], "w": f"word {i}"})
            elif verb == "remove":
                b.remove(id_)
            else:
                getattr(b, verb)(id_, more[0], priority=more[1], context=more[2])


def expected(model: Model, contexts: dict[str, Any], i: int, kind: str) -> None:
    for verb, id_, *more in steps(i, kind):
        if verb == "set":
            contexts[id_] = {"c": more[0], "w": f"word {i}"}
        elif verb == "remove":
            del model[id_]
        else:
            model[id_] = (more[0], more[1], more[2])


def run(folder: str, first: int, kind: str) -> None:
    """Change the folder until killed; a line for each change that was acknowledged."""
    is_grouped = kind == "group"
    m = mw.Matcher.open(folder, commit_every=0.01 if is_grouped else 0.0)
    os.write(1, f"open {os.getpid()}\n".encode())
    while True:
        change(m, first, kind)
        if is_grouped and first % GROUP == 0:
            m.flush()
        if not is_grouped or first % GROUP == 0:
            os.write(1, f"{first}\n".encode())
        first += 1


def main(folder: str, kind: str) -> None:
    """Fork a process for every number that is read; it begins with that change, and is killed.

    Forked, so that the kernels are loaded once.
    """
    if kind != "contexts":
        tiers.HEAD_MOST, tiers.FACTOR, checkpoint.EVERY = 6, 2, 9
    with tempfile.TemporaryDirectory() as other, mw.Matcher.open(other) as warm:
        for i in range(60):
            change(warm, i, kind)
        warm.match({"x": 1, "y": 1})
    for line in sys.stdin:
        pid = os.fork()
        if not pid:
            run(folder, int(line), kind)
        os.waitpid(pid, 0)
        os.write(1, b"end\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
