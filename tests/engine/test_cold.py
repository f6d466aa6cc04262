"""A process without compiled kernels: what compiles does so while no lock of a matcher is held.

The compiler here is a slow fake: a kernel is loaded from the cache as always, but only after a
pause, and what the calling thread holds meanwhile is noted.
"""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

COLD = """
    import sys, threading, time
    from matchwood import Matcher
    from matchwood.engine import holding
    from matchwood.kernel import deferred
    from matchwood.kernel.cache import KernelCache

    holding.may_compile = lambda: True  # as if the package had no kernels

    compiled, under_lock = set(), []
    load = KernelCache.load_overload

    def slow_compiler(self, sig, target_context):
        key = self._name, str(sig)
        if key not in compiled:
            if deferred.is_deferred():
                raise deferred.NotCompiledError(self._dispatcher, sig)
            # A change of a view that is not guarded holds a lock that searches do not take.
            if watched and (
                m._view.is_guarded and (m._access.is_mine or m._access._is_reading)
                or m._access.contexts._is_owned()
            ):
                under_lock.append(key)
            time.sleep(0.002)
            compiled.add(key)
        return load(self, sig, target_context)

    KernelCache.load_overload = slow_compiler
    watched = False
    texts = ["a = 1 AND b > 2", "a < 5", "s = 'x' OR b = 3", "NOT (a = 2) AND s <> 'y'"]
    event = {"a": 1, "b": 3, "s": "x"}
    given = {"attributes": ("a", "b")} if sys.argv[1] == "vcr" else {}
    if given:
        texts = ["a BETWEEN 1 AND 4 AND b BETWEEN 2 AND 9"]
    m = Matcher(sys.argv[1], **given)
    m.add_many([(i, texts[i % len(texts)]) for i in range(50)])
    found = m.match(event)  # one thread so far: nobody waits, it compiles where it is

    stop, answers, errors = threading.Event(), [], []

    def serve():
        try:
            while not stop.is_set():
                answers.append(len(m.match(event)))
                answers.append(m.match_many([event] * 3, threads=2).offsets.tolist()[1])
        except BaseException as error:
            errors.append(error)

    server = threading.Thread(target=serve)
    server.start()
    while not answers:
        time.sleep(0.01)
    watched = True
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
    stop.set()
    server.join()
    assert not errors, errors
    print(len(compiled) > n_before, sorted(under_lock))
"""


OTHERS = ("scan", "be_tree", "pst_bloom", "a_tree", "vcr")


@pytest.mark.slow
@pytest.mark.parametrize(
    "index", ["auto", "agile", *[pytest.param(i, marks=pytest.mark.long) for i in OTHERS]]
)
def test_nothing_compiles_while_a_search_may_wait_for_it(index):
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(COLD), index],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout == "True []\n"
