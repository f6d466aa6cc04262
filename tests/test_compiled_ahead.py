"""Kernels that were compiled before: found in the package, checked, and nothing compiles again."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from matchwood.bench.compile_ahead import compile_kernels
from matchwood.errors import MatchwoodError
from matchwood.kernel import store

PACKAGE = Path(store.__file__).parents[1]
STEP = "workload ads"
OFFERED = [each for each in store.baselines() if store.cpu_offers(each)]
BEST = next(iter(OFFERED), None)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(BEST is None, reason="no baseline for this kind of machine"),
    pytest.mark.xdist_group("compiled ahead"),
]


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """The package with the kernels of one step, for every baseline that this CPU offers."""
    root = tmp_path_factory.mktemp("site")
    skipped = shutil.ignore_patterns("__pycache__", store.FOLDER)
    shutil.copytree(PACKAGE, root / "matchwood", ignore=skipped)
    for baseline in OFFERED:
        done = compile_kernels(baseline, root / "matchwood" / store.FOLDER, steps=[STEP])
        assert len(done) > 5
    return root


@pytest.fixture
def site(compiled, tmp_path):
    """A copy that a test may change."""
    return shutil.copytree(compiled, tmp_path / "site")


RUN = f"""
from matchwood.bench.exercise import steps
from matchwood.kernel.jit import compile_count
steps()[{STEP!r}]()
print(compile_count())
"""


def run(path, home, code=RUN, **env):
    """Compilations of a process that has only this package and an empty home."""
    unset = ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "MATCHWOOD_QUIET",
             store.CHOICE)  # fmt: skip
    clean = {key: value for key, value in os.environ.items() if key not in unset}
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**clean, "PYTHONPATH": str(path), "HOME": str(home), **env},
    )
    return int(done.stdout), done.stderr


def test_a_package_with_kernels_compiles_nothing(compiled, tmp_path):
    assert run(compiled, tmp_path) == (0, "")


def test_a_package_in_a_zip_file_compiles_nothing(compiled, tmp_path):
    """As Spark sends it to executors."""
    packed = tmp_path / "matchwood.zip"
    with zipfile.ZipFile(packed, "w") as archive:
        for file in compiled.rglob("*"):
            if "__pycache__" not in file.parts:
                archive.write(file, file.relative_to(compiled))
    assert run(packed, tmp_path) == (0, "")


def test_a_package_that_cannot_be_written_compiles_nothing_without_a_home(site):
    for folder in [site, *[each for each in site.rglob("*") if each.is_dir()]]:
        folder.chmod(0o555)
    assert run(site, "/nonexistent") == (0, "")


def manifest_of(site):
    return site / "matchwood" / store.FOLDER / BEST / store.MANIFEST


READ = f"""
import sys
from matchwood.kernel.store import Shelf, shelves
read, used = Shelf.read, set()
Shelf.read = lambda self, name: used.add(self.baseline) or read(self, name)
{RUN}
sys.stderr.write(f"{{[each.baseline for each in shelves()]}} {{sorted(used)}}")
"""


def test_the_manifest_says_that_some_steps_are_not_all(compiled):
    assert json.loads(manifest_of(compiled).read_text())["is_whole"] is False


def test_the_best_baseline_that_the_cpu_offers_is_used(compiled, tmp_path):
    assert run(compiled, tmp_path, READ) == (0, f"{OFFERED} {[BEST]}")


@pytest.mark.parametrize("baseline", OFFERED)
def test_a_baseline_that_is_chosen_is_used_alone(compiled, tmp_path, baseline):
    found = run(compiled, tmp_path, READ, MATCHWOOD_BASELINE=baseline)
    assert found == (0, f"{[baseline]} {[baseline]}")


OLDER = f"""
from llvmlite import binding
offered = binding.get_host_cpu_features()
offered["avx2"] = False
binding.get_host_cpu_features = lambda: offered
{READ}
"""


@pytest.mark.skipif("x86-64-v3" not in OFFERED, reason="a CPU of x86-64-v3 is made an older one")
def test_an_older_cpu_uses_the_lesser_baseline(compiled, tmp_path):
    assert run(compiled, tmp_path, OLDER) == (0, "['x86-64-v2'] ['x86-64-v2']")


def test_a_baseline_that_the_package_has_not_compiles_and_says_so(site, tmp_path):
    count, said = run(site, tmp_path, MATCHWOOD_BASELINE="x86-64-v9")
    assert count > 0
    assert said.count("\n") == 1
    assert "MATCHWOOD_BASELINE is x86-64-v9" in said


def test_a_file_that_is_not_what_the_manifest_says_is_compiled_again(site, tmp_path):
    for file in manifest_of(site).parents[1].rglob("*.nbc"):
        content = bytearray(file.read_bytes())
        content[len(content) // 2] ^= 1
        file.write_bytes(content)
    count, said = run(site, tmp_path)
    assert count > 0
    assert "compiling its kernels" in said


def test_kernels_of_another_numba_are_not_used_and_the_line_says_so(site, tmp_path):
    for file in manifest_of(site).parents[1].rglob(store.MANIFEST):
        manifest = json.loads(file.read_text())
        manifest["made_with"][1] = "numba 0.1"
        file.write_text(json.dumps(manifest))
    count, said = run(site, tmp_path)
    assert count > 0
    assert said.count("\n") == 1
    assert "the package's own are for" in said
    assert "numba 0.1" in said


def test_changed_sources_are_compiled_again(site, tmp_path):
    with (site / "matchwood" / "workload" / "ads.py").open("a") as file:
        file.write("# no kernel reads this\n")
    assert run(site, tmp_path)[0] == 0
    kernels = next((site / "matchwood" / "workload").glob("ad_trees_kernels.py"))
    jit = site / "matchwood" / "kernel" / "jit.py"
    assert kernels.is_file()
    with jit.open("a") as file:
        file.write("# every kernel reads this\n")
    assert run(site, tmp_path)[0] > 0


def test_code_for_a_baseline_uses_no_instruction_beyond_it(tmp_path):
    """The machine that compiles may offer more: AVX-512 has registers of its own."""
    code = """
import numpy as np
from matchwood.encode.column_kernels import place_numbers
keys = np.zeros(9, np.int64)
some = np.arange(9)
place_numbers(some, some, some >= 0, some, keys)
asm = "".join(place_numbers.inspect_asm().values())
print(asm.count("zmm") + asm.count("%k1"))
"""
    assert run(PACKAGE.parent, tmp_path, code, NUMBA_CACHE_DIR=str(tmp_path),
               MATCHWOOD_QUIET="1", **store.baseline_environment(BEST)) == (0, "")  # fmt: skip


def test_an_unknown_baseline_is_refused(tmp_path):
    with pytest.raises(MatchwoodError, match="expected a baseline of this machine"):
        compile_kernels("x86-64-v9", tmp_path)
