"""What is compiled ahead is what the product needs: the quick tests compile nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from matchwood.bench.compile_ahead import compile_kernels

TESTS = Path(__file__).parent
PUBLIC_VERBS = (
    "tests/engine/test_matching.py",
    "tests/engine/test_snapshot.py",
    "tests/engine/test_subscriptions.py",
    "tests/engine/test_add_many.py",
    "tests/engine/test_explain.py",
    "tests/context/test_matcher.py",
    "tests/context/test_agile.py",
    "tests/index/test_interval_events.py",
    "tests/workload",
)
"""The contract tests of indexes are left out: they pass arrays that no public verb makes, with gaps
or protected by NumPy, and these have types of their own."""


@pytest.mark.slow
def test_tests_of_public_verbs_compile_nothing_that_the_exercise_does_not(tmp_path):
    compile_kernels()  # into the cache that the tests use; loads what is there
    log = tmp_path / "compiled"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m",
         "not slow and not spark", *PUBLIC_VERBS],
        capture_output=True,
        text=True,
        cwd=TESTS.parent,
        env={**os.environ, "MATCHWOOD_COMPILED_TO": str(log), "MATCHWOOD_PROFILE": "fast"},
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:]
    assert log.read_text().splitlines() == []
