"""The demo's screen: what the demo says, and nothing of Spark's own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SRC = str(Path(__file__).parents[2] / "src")


@pytest.mark.spark
@pytest.mark.slow
def test_the_demo_agrees_with_spark_sql_and_shows_no_warnings_of_spark() -> None:
    command = "from matchwood.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", command, "demo", "--subscriptions", "800", "--events", "300"],
        env={**os.environ, "PYTHONPATH": SRC, "MATCHWOOD_QUIET": "1"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for words in ("Spark SQL agrees on 60,000 pairs", "Matches per event", "█", "Busiest", "TRUE"):
        assert words in done.stdout
    last = done.stdout.splitlines()[-1]  # the picture ends the demo
    assert "█" in last
    assert done.stderr == ""
