"""What bin/demo compiles ahead is what the demo uses, in its driver and in Spark's workers."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

RECORDING = """
from matchwood.kernel.cache import KernelCache

load = KernelCache.load_overload

def recorded(self, sig, target_context):
    with open({file!r}, "a") as file:
        file.write(f"{{self._folder}} {{self._name}} {{sig}}\\n")
    return load(self, sig, target_context)

KernelCache.load_overload = recorded
"""


def kernels_of(code, folder):
    """The kernels that a process uses, and the processes it starts."""
    folder.mkdir()
    file = folder / "kernels.txt"
    (folder / "sitecustomize.py").write_text(RECORDING.format(file=str(file)))
    path = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return set(file.read_text().splitlines())


@pytest.mark.slow
@pytest.mark.spark
def test_the_demo_uses_no_kernel_that_its_step_leaves_out(tmp_path):
    step = "from matchwood.bench.exercise import steps; steps()['demo']()"
    demo = "from matchwood.cli.demo_spark import run; run(6_000, 500, 1, 'local[2]')"
    used = kernels_of(demo, tmp_path / "demo")
    assert len(used) > 20
    assert used <= kernels_of(step, tmp_path / "step")
