"""What is compiled ahead is what the product needs: the quick tests compile nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from matchwood.bench.compile_ahead import compile_kernels

TESTS = Path(__file__).parent
REPRESENTATIVE = (
    "tests/engine/test_matching.py",
    "tests/engine/test_snapshot.py",
    "tests/engine/test_subscriptions.py",
    "tests/engine/test_add_many.py",
    "tests/engine/test_explain.py",
    "tests/context/test_matcher.py",
    "tests/context/test_agile.py",
    "tests/index/test_contract.py",
    "tests/index/test_interval_events.py",
    "tests/workload",
)
"""Tests that reach most kernels through public verbs; those of single kernels are left out."""

READ_ONLY = "cannot_be_written"
"""Left out: arrays that NumPy protects have a type of their own, and no public verb makes them; a
snapshot is mapped copy-on-write."""


@pytest.mark.slow
def test_tests_of_public_verbs_compile_nothing_that_the_exercise_does_not(tmp_path):
    compile_kernels()  # into the cache that the tests use; loads what is there
    log = tmp_path / "compiled"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m",
         "not slow and not spark", "-k", f"not {READ_ONLY}", *REPRESENTATIVE],
        capture_output=True,
        text=True,
        cwd=TESTS.parent,
        env={**os.environ, "MATCHWOOD_COMPILED_TO": str(log), "MATCHWOOD_PROFILE": "fast"},
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:]
    assert log.read_text().splitlines() == []
