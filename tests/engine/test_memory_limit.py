"""Memory that runs out in the middle of a change never loses or adds a subscription."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("memory_limit_run.py")
OTHERS = ("scan", "a_tree")
IS_LONG = os.environ.get("MATCHWOOD_PROFILE") == "long"


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc")
@pytest.mark.parametrize("megabytes", [2, 4, 8] if IS_LONG else [4])
@pytest.mark.parametrize(
    "index", ["auto", "be_tree", *[pytest.param(i, marks=pytest.mark.long) for i in OTHERS]]
)
def test_a_matcher_holds_what_it_acknowledged_when_memory_runs_out(index, megabytes):
    src = Path(__file__).parents[2] / "src"
    done = subprocess.run(
        [sys.executable, str(SCRIPT), index, str(megabytes)],
        env={**os.environ, "PYTHONPATH": str(src), "MATCHWOOD_QUIET": "1", "MALLOC_ARENA_MAX": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    n_errors, verdict = done.stdout.split()
    assert verdict == "equal"
    assert int(n_errors) > 0, "memory never ran out: nothing was tested"
