"""A forked child can use the matchers of its parent, whatever other threads do at that moment."""

from __future__ import annotations

import os
import signal
import threading
import time
from typing import Any

import pytest

import matchwood as mw
from matchwood.engine import forks
from matchwood.engine.access import Access

N_FORKS = 1_000 if os.environ.get("MATCHWOOD_PROFILE") == "long" else 40

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")


def answers(m: mw.Matcher) -> list[Any]:
    return [m.match({"x": x, "y": 1}) for x in range(5)]


def run_in_child(work: Any) -> int:
    """Fork, do it there, and return the exit code; a child that hangs is ended after 60 s."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            signal.alarm(60)
            code = 0 if work() else 2
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("index", ["auto", "a_tree", "agile"])
def test_children_of_a_busy_process_match_and_change(index):
    m = mw.Matcher(index=index)
    m.add_many([(i, f"x = {i % 5} AND y >= {i % 3}") for i in range(300)])
    expected = answers(m)
    stop = threading.Event()

    def match() -> None:
        events = [{"x": i % 7, "y": i % 4} for i in range(200)]
        while not stop.is_set():
            m.match_many(events)

    def change() -> None:
        while not stop.is_set():
            m.add("brief", "x = 77")
            m.remove("brief")

    def child() -> bool:
        same = answers(m) == expected
        if "brief" in m:
            m.remove("brief")
        m.add("child", "x = 1")
        return same and m.match({"x": 1}) == ["child"]

    threads = [threading.Thread(target=each) for each in (match, change)]
    for thread in threads:
        thread.start()
    try:
        codes = []
        for _ in range(N_FORKS):
            codes.append(run_in_child(child))
            time.sleep(0.001)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert codes == [0] * N_FORKS
    assert answers(m) == expected


def test_a_fork_inside_a_progress_callback_does_not_hang():
    m = mw.Matcher()
    codes = []

    def fork(done: int, total: int) -> None:
        codes.append(run_in_child(lambda: True))

    m.add_many([(1, "x = 1")], progress=fork)
    assert codes == [0]
    assert m.match({"x": 1}) == [1]


def test_a_fork_while_a_search_asks_another_matcher_does_not_hang(monkeypatch):
    """As a filter over own attributes does: a matcher of its own, asked inside of a search."""
    outer, inner = Access(), Access()

    def child() -> bool:
        signal.alarm(120)
        monkeypatch.setattr(forks, "_owners", [inner, outer])
        is_searching = threading.Event()

        def search() -> None:
            with outer.shared():
                is_searching.set()
                time.sleep(0.2)  # the fork has the locks of `inner` now, and wants this one
                with inner.writing():
                    pass

        thread = threading.Thread(target=search)
        thread.start()
        is_searching.wait()
        code = run_in_child(lambda: True)
        thread.join()
        with inner.writing(), outer.writing():  # both were given back
            return code == 0

    assert run_in_child(child) == 0
