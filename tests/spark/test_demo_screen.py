"""The demo on Spark, run once: its screen shows nothing of Spark's own, and what it compiles.

What bin/demo compiles ahead is what the demo uses, in its driver and in Spark's workers.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SRC = str(Path(__file__).parents[2] / "src")
SIZES = ("--subscriptions", "6000", "--events", "500", "--master", "local[2]")
RECORDING = """
from matchwood.kernel.cache import KernelCache

load = KernelCache.load_overload

def recorded(self, sig, target_context):
    with open({file!r}, "a") as file:
        file.write(f"{{self._folder}} {{self._name}} {{sig}}\\n")
    return load(self, sig, target_context)

KernelCache.load_overload = recorded
"""


def run(
    folder: Path, code: str, *arguments: str
) -> tuple[subprocess.CompletedProcess[str], set[str]]:
    """A process that ended well, and the kernels that it used, and the processes it started."""
    file = folder / "kernels.txt"
    (folder / "sitecustomize.py").write_text(RECORDING.format(file=str(file)))
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env={**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{SRC}", "MATCHWOOD_QUIET": "1"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done, set(file.read_text().splitlines())


@pytest.fixture(scope="module")
def demo(
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[subprocess.CompletedProcess[str], set[str]]:
    command = "from matchwood.cli import main; main()"
    return run(tmp_path_factory.mktemp("demo"), command, "demo", *SIZES)


def test_the_demo_agrees_with_spark_sql_and_shows_no_warnings_of_spark(demo) -> None:
    done, _ = demo
    for words in ("Spark SQL agrees on 100,000 pairs", "Matches per event", "█", "Busiest", "TRUE"):
        assert words in done.stdout
    last = done.stdout.splitlines()[-1]  # the picture ends the demo
    assert "█" in last
    assert done.stderr == ""


def test_the_demo_uses_no_kernel_that_its_step_leaves_out(demo, tmp_path: Path) -> None:
    _, used = demo
    assert len(used) > 20
    assert used <= run(tmp_path, "from matchwood.bench.exercise import steps; steps()['demo']()")[1]
