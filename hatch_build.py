"""Compile the kernels while a wheel is built, and pack them into it.

A wheel with kernels is for one version of Python and one kind of machine.  An editable install has
none: bin/setup compiles into the clone.  MATCHWOOD_BASELINES says for which CPU baselines,
as in `x86-64-v3`; empty means a wheel without kernels, for any Python.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

COMPILE = """
import sys
from pathlib import Path
from matchwood.bench.compile_ahead import compile_kernels
from matchwood.kernel.store import baselines
chosen = baselines() if sys.argv[2] == "all" else sys.argv[2].split()
for baseline in chosen:
    compile_kernels(baseline, Path(sys.argv[1]))
print(*chosen)
"""


class CompileKernels(BuildHookInterface):
    """Adds the folder `matchwood/_compiled` to a wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        chosen = os.environ.get("MATCHWOOD_BASELINES", "all")
        if version == "editable" or not chosen.strip():
            return
        folder = Path(self.root) / "src" / "matchwood" / "_compiled"  # what is current is kept
        folder.mkdir(parents=True, exist_ok=True)
        paths = [str(Path(self.root) / "src"), os.environ.get("PYTHONPATH", "")]
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
        self.app.display_info("compiling the kernels of matchwood, some minutes")
        command = [sys.executable, "-c", COMPILE, str(folder), chosen]
        done = subprocess.run(  # noqa: S603 -- this very Python
            command, env=env, check=True, stdout=subprocess.PIPE, text=True
        )
        for baseline in done.stdout.split():  # none on a machine of another kind
            build_data["force_include"][str(folder / baseline)] = f"matchwood/_compiled/{baseline}"
            build_data["pure_python"] = False
            build_data["infer_tag"] = True
