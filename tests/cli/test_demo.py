"""The demo: its workload, its second opinion, and what it shows."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import matchwood as mw
from commands import call
from matchwood.cli import demo_job
from matchwood.cli.demo_check import matches_in_sqlite
from matchwood.workload.bookshop import Bookshop

SMALL = ("demo", "--local", "--subscriptions", "600", "--events", "300")


def test_the_seed_decides_everything() -> None:
    first, second, other = Bookshop(3), Bookshop(3), Bookshop(4)
    texts = [first.subscription() for _ in range(50)]
    assert texts == [second.subscription() for _ in range(50)]
    assert texts != [other.subscription() for _ in range(50)]
    assert first.event() == second.event()


def test_wishes_have_many_shapes() -> None:
    shop = Bookshop(1)
    texts = " ".join([shop.subscription() for _ in range(500)])
    words = ("OR", "NOT", "IN", "LIKE", "IS NULL", "TIMESTAMP", "DATE", "BETWEEN", "<>", "O''Brien")
    assert all(f"{word} " in texts or word in texts for word in words)


def test_sqlite_and_the_matcher_agree() -> None:
    shop = Bookshop(5)
    texts, events = [shop.subscription() for _ in range(500)], [shop.event() for _ in range(500)]
    matcher = mw.Matcher()
    assert matcher.add_many(list(enumerate(texts))).errors == []
    ours: list[set[int]] = [set() for _ in texts]
    for number, ids in enumerate(matcher.match_many(events)):
        for id_ in ids:
            ours[int(id_)].add(number)
    assert ours == matches_in_sqlite(texts, events)


def test_the_demo_shows_figures_a_picture_and_reasons() -> None:
    result = call(*SMALL)
    assert result.exit_code == 0, result.stderr
    for words in (
        "subscriptions added",
        "SQLite agrees",
        "Matches per event",
        "█",
        "Busiest",
        "TRUE",
    ):
        assert words in result.stdout


def test_the_demo_gives_machines_the_same_figures() -> None:
    found = json.loads(call(*SMALL, "--json").stdout)
    assert (found["subscriptions"], found["events"]) == (600, 300)
    assert found["check"] | {"matches": 0} == {
        "against": "SQLite", "pairs": 180_000, "matches": 0, "differences": 0,
    }  # fmt: skip
    assert found["explained"][0]["matches"] is True


def test_a_wrong_answer_ends_with_1(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo_job, "matches_in_sqlite", lambda texts, _: [{0}] * len(texts))
    result = call(*SMALL)
    assert result.exit_code == 1
    assert "differ" in result.stderr


@pytest.mark.slow
def test_the_demo_runs_without_a_terminal() -> None:
    env = {
        **os.environ,
        "PYTHONPATH": str(Path(__file__).parents[2] / "src"),
        "MATCHWOOD_QUIET": "1",
    }
    code = "from matchwood.cli import main; main()"
    command = [sys.executable, "-c", code, *SMALL, "--json"]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    json.loads(done.stdout)
