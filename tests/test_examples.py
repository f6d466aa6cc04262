"""The examples run as users run them, and say what is true."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import matchwood as mw

EXAMPLES = Path(__file__).parent.parent / "examples"


def test_geofence_alerts_are_those_of_a_scan(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def lines() -> list[str]:
        example = runpy.run_path(str(EXAMPLES / "geofence_alerts.py"))
        example["main"](3_000, 60, 6, 1)
        return capsys.readouterr().out.splitlines()

    found = lines()

    class Scanning(mw.Matcher):
        def __init__(self, **settings: Any) -> None:
            super().__init__(index="scan", schema=settings["schema"])

    monkeypatch.setattr(mw, "Matcher", Scanning)
    expected = lines()
    assert found[:-1] == expected[:-1]
    assert found[0].startswith("3,000 zones; at the start")
    assert "second 3: 300 zones were removed, 1 was added" in found
    assert sum("; vehicle" in line for line in found) == 6
    assert found[-1].startswith("vcr: 2701 conjunctions")


def test_orders_go_to_the_nearest_warehouse_with_enough_stock(capsys):
    runpy.run_path(str(EXAMPLES / "warehouses.py"), run_name="__main__")
    said = capsys.readouterr().out.splitlines()
    assert said[:3] == [
        "order 1: 10 from Basel, which has 30 left",
        "order 2: 8 from Ulm, which has 0 left",
        "order 3: 1 from Basel, which has 29 left",  # Ulm is nearer, and empty by now
    ]
    assert said[3] == "order 4: nobody has 30 within reach"
    assert "quantity <= ctx.stock is FALSE: quantity is 30, ctx.stock is 29" in said[4]
    assert said[5] == "order 5: 25 from Graz, which has 35 left"
    assert "Graz closes: ['Graz'] cannot deliver any more" in said
    assert said[-1] == "order 6 again, after a delivery: from Ulm"


def test_eventbridge_patterns_match_json_lines(capsys):
    runpy.run_path(str(EXAMPLES / "eventbridge.py"), run_name="__main__")
    said = capsys.readouterr().out.splitlines()
    assert said[0].endswith("source = 'aws.ec2' AND detail.state IN ('stopped', 'terminated')")
    assert said[-5].startswith("refused rule 'anywhere': cidr at detail.source-ip[0].cidr: ")
    assert said[-4:] == [
        "event 0: stopped",
        "event 1: not-ours, big-object",
        "event 2: untagged",
        "event 3: office, either",
    ]


@pytest.mark.slow
def test_a_live_service_that_is_killed_loses_nothing() -> None:
    command = [sys.executable, str(EXAMPLES / "live_service.py")]
    done = subprocess.run(
        [*command, "--subscriptions", "9000", "--seconds", "1", "--rate", "2000"],
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    said = done.stdout.splitlines()
    assert done.returncode == 0, done.stdout + done.stderr
    assert said[0].startswith("9,000 saved searches")
    assert "the service is gone (exit code -9)" in said
    assert said[-2:] == [
        "indexes against a scan, 200 offers: equal",
        "what was acknowledged: all of it, and nothing else",
    ]


@pytest.mark.slow
def test_asyncio_and_a_pool_of_processes_find_what_one_thread_finds() -> None:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "asyncio_and_processes.py")],
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    first, second = done.stdout.splitlines()
    assert first == "asyncio: 'late' was found by 0 requests, then by 20"
    assert second.startswith("processes: 1,000 events, ")
    assert second.endswith(" matches, equal to one process")
