"""A process without compiled kernels: what compiles does so while no lock of a matcher is held.

The compiler here is a slow fake: a kernel is loaded from the cache as always, but only after a
pause, and what the calling thread holds meanwhile is noted.
"""

from __future__ import annotations

import subprocess
import sys
import textwrap
import threading

import pytest

from matchwood import Matcher
from matchwood.engine import access, holding, rehearsal
from matchwood.kernel import store
from matchwood.kernel.deferred import may_compile

COLD = """
    import sys, tempfile, threading, time
    from matchwood import Matcher
    from matchwood.engine import access, holding
    from matchwood.engine.segments import tiers
    from matchwood.kernel import deferred
    from matchwood.kernel.cache import KernelCache

    access.may_compile = holding.may_compile = lambda: True  # as if the package had no kernels

    compiled, under_lock = set(), []
    load = KernelCache.load_overload

    def slow_compiler(self, sig, target_context):
        key = self._name, str(sig)
        if key not in compiled:
            if deferred.is_deferred():
                raise deferred.NotCompiledError(self._dispatcher, sig)
            # A search of a view that is not guarded holds a lock that nothing waits for.
            if any(
                m._access.is_mine
                or m._view.is_guarded and m._access._is_reading
                or m._access.contexts._is_owned()
                for m in watched
            ):
                under_lock.append(key)
            time.sleep(0.002)
            compiled.add(key)
        return load(self, sig, target_context)

    KernelCache.load_overload = slow_compiler
    watched = []
    tiers.HEAD_MOST = 100  # so that segments are made and merged
    texts = ["a = 1 AND b > 2", "a < 5", "s = 'x' OR b = 3", "NOT (a = 2) AND s <> 'y'"]
    event = {"a": 1, "b": 3, "s": "x"}
    given = {"attributes": ("a", "b")} if sys.argv[1] == "vcr" else {}
    if given:
        texts = ["a BETWEEN 1 AND 4 AND b BETWEEN 2 AND 9"]
    folder = tempfile.TemporaryDirectory()
    is_durable = sys.argv[2] == "durable"
    if is_durable:
        m = Matcher.open(folder.name, sys.argv[1], sync=False, **given)
    else:
        m = Matcher(sys.argv[1], **given)
    m.add_many([(i, texts[i % len(texts)]) for i in range(50)])
    found = m.match(event)  # one thread so far: nobody waits, it compiles where it is

    stop, answers, errors = threading.Event(), [], []

    def serve():
        try:
            while not stop.is_set():
                for m in list(served):
                    answers.append(len(m.match(event)))
                    answers.append(m.match_many([event] * 3, threads=2).offsets.tolist()[1])
        except BaseException as error:
            errors.append(error)

    served = [m]
    server = threading.Thread(target=serve)
    server.start()
    while not answers:
        time.sleep(0.01)
    watched.append(m)
    n_before = len(compiled)
    m.add("one", texts[0])
    m.replace("one", texts[-1])
    m.match(event, limit=2)
    m.near(event, 2) if not given else None
    m.remove("one")
    m.add_many([(f"more {i}", texts[i % len(texts)]) for i in range(300)])
    m.match_json('{"a": 1, "b": 3}')
    m.remove_many([f"more {i}" for i in range(300)])
    assert m.match(event) == found
    if not given:
        m.add("bound", "a < ctx.x", context="ann")
        m.set_context("ann", {"x": 4})
        assert "bound" in m.match(event)
        m.set_context_many({"ann": {"x": 0}})
        m.remove_context("ann")
        m.remove("bound")
    assert m.match(event) == found
    for turn in range(4):  # segments, which are merged
        m.add_many([(f"{turn} {i}", texts[i % len(texts)]) for i in range(150)])
    m.remove_many([f"0 {i}" for i in range(149)])
    m._merger.wait()
    m.compact()
    with m.batch() as b:
        b.add("one", texts[0])
        b.replace("1 1", texts[-1])
        b.remove("0 149")
        b.add_many([(f"more {i}", texts[i % len(texts)]) for i in range(200)])
        b.remove_many([f"2 {i}" for i in range(150)])
    if not given:
        with m.batch() as b:
            b.set_context("bob", {"x": 4})
            b.add("bound", "a < ctx.x", context="bob")
            b.remove("one")
        assert "bound" in m.match(event)
    if is_durable:
        m.checkpoint()
        m.replace("1 1", texts[0])
        m.flush()
        follower = Matcher.open(folder.name, read_only=True)
        follower.match(event)
        watched.append(follower)
        served.append(follower)
        for turn in range(3):
            m.add(f"last {turn}", texts[0])
            m.remove_many([f"3 {i}" for i in range(turn, 150, 3)])
            m.flush()
            follower.refresh()
        assert follower.match(event) == m.match(event)
    stop.set()
    server.join()
    m._merger.wait()
    assert m._merger.error is None, m._merger.error
    assert not errors, errors
    print(len(compiled) > n_before, sorted(under_lock))
"""


OTHERS = ("scan", "be_tree", "pst_bloom", "a_tree", "vcr")


@pytest.mark.slow
@pytest.mark.parametrize("kept", ["memory", "durable"])
@pytest.mark.parametrize(
    "index", ["auto", "agile", *[pytest.param(i, marks=pytest.mark.long) for i in OTHERS]]
)
def test_nothing_compiles_while_a_search_or_a_change_may_wait_for_it(index, kept):
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(COLD), index, kept],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout == "True []\n"


@pytest.mark.parametrize("is_whole", [True, False])
def test_where_some_kernels_are_missing_the_others_do_not_hide_it(is_whole, monkeypatch):
    shelf = store.Shelf("x86-64-v3", None, {}, is_whole)
    monkeypatch.setattr(store, "shelves", lambda: (shelf,))
    monkeypatch.setattr("numba.config.DISABLE_JIT", 0)
    assert may_compile.__wrapped__() is not is_whole


def test_a_change_does_not_fail_with_its_rehearsal(monkeypatch):
    """It writes snapshots to scratch files, which may be impossible."""

    def no_folder(*_args, **_named):
        raise FileNotFoundError("no usable temporary directory found")

    tried = []
    monkeypatch.setattr(access, "may_compile", lambda: True)
    monkeypatch.setattr(holding, "may_compile", lambda: True)
    monkeypatch.setattr(rehearsal, "_rehearsed", set())
    monkeypatch.setattr(rehearsal, "AUTO_FROM", 0)
    monkeypatch.setattr(rehearsal, "TREES_FROM", 0)
    monkeypatch.setattr(rehearsal, "change", tried.append)
    monkeypatch.setattr(rehearsal.tempfile, "TemporaryDirectory", no_folder)
    m, is_over = Matcher(), threading.Event()
    has_searched = threading.Event()

    def search():
        m.match({"a": 1})
        has_searched.set()
        is_over.wait()

    thread = threading.Thread(target=search)
    thread.start()
    has_searched.wait()
    try:
        m.add("s", "a = 1")
    finally:
        is_over.set()
        thread.join()
    assert tried
    assert m.match({"a": 1}) == ["s"]
