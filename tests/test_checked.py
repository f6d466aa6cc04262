"""Kernels count elements from 0 and stay inside their arrays; with MATCHWOOD_CHECKED=1 they say so.

Compiled code has no code for `a[-1]` and checks no bounds: an index that is wrong reads or writes
other memory.  The whole quick set runs with checks as well:

    MATCHWOOD_CHECKED=1 NUMBA_CACHE_DIR=FOLDER python -m pytest -m "not slow and not spark"
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from matchwood.kernel.bound import IS_COMPILED
from parsed import tree_of

TESTS = Path(__file__).parent
SRC = TESTS.parent / "src" / "matchwood"
DECORATORS = {"kernel", "kernel_with_gil", "part", "inlined"}


def from_the_end(tree: ast.AST) -> Iterator[str]:
    """The indexes in kernels and parts that are negative constants; slices may have some."""
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        names = {each.id for each in function.decorator_list if isinstance(each, ast.Name)}
        for node in ast.walk(function) if names & DECORATORS else ():
            if not isinstance(node, ast.Subscript):
                continue
            index = node.slice
            for each in index.elts if isinstance(index, ast.Tuple) else [index]:
                if (
                    isinstance(each, ast.UnaryOp)
                    and isinstance(each.op, ast.USub)
                    and isinstance(each.operand, ast.Constant)
                ):
                    yield f"{function.name}: {ast.unparse(node)}"


def test_no_kernel_counts_elements_from_the_end() -> None:
    found = {path.name: list(from_the_end(tree_of(path))) for path in SRC.rglob("*.py")}
    assert {name: each for name, each in found.items() if each} == {}


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("return a[-1]", ["f: a[-1]"]),
        ("a[i, -2] = 3", ["f: a[i, -2]"]),
        ("return a[-i], a[i - 1], a[-2:]", []),
    ],
)
def test_indexes_from_the_end_are_seen(body: str, found: list[str]) -> None:
    for decorator in DECORATORS:
        assert list(from_the_end(ast.parse(f"@{decorator}\ndef f(a, i):\n    {body}"))) == found
    assert list(from_the_end(ast.parse(f"def f(a, i):\n    {body}"))) == []


def checked(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A process of Python whose kernels check their indexes."""
    chosen = {"MATCHWOOD_CHECKED": "1", "MATCHWOOD_QUIET": "1", "MATCHWOOD_PROFILE": "fast"}
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        cwd=TESTS.parent,
        env={**os.environ, **chosen, "NUMBA_CACHE_DIR": str(folder)},
        check=False,
    )


OUTSIDE = """
import numpy as np
from matchwood.kernel.jit import kernel, part, word_at

@part
def element(a, i):
    return a[i]

@kernel
def read(a, i):
    return element(a, i)

@kernel
def write(a, i, j):
    a[i, j] = 1

@kernel
def row(a, i):
    return a[i][0]

@kernel
def word(a, i):
    return word_at(a, i)

numbers, gaps = np.arange(3), np.arange(6)[::2]
grid, text = np.zeros((2, 3), np.int32), np.zeros(9, np.uint8)
for call, inside, outside in (
    (read, [(numbers, 0), (numbers, 2), (gaps, 2)], [(numbers, -1), (numbers, 3), (gaps, 3)]),
    (read, [(numbers[:1], 0)], [(numbers[:0], 0), (numbers, 2**62)]),
    (write, [(grid, 1, 2)], [(grid, 1, 3), (grid, 2, 0), (grid, -1, 0), (grid, 0, -1)]),
    (row, [(grid, 1)], [(grid, 2), (grid, -1)]),
    (word, [(text, 0), (text, 1)], [(text, -1), (text, 2)]),
):
    for arguments in inside:
        call(*arguments)
    for arguments in outside:
        try:
            call(*arguments)
        except IndexError as error:
            print(error)
"""


@pytest.mark.slow
@pytest.mark.skipif(not IS_COMPILED, reason="about compiled code")
def test_an_index_outside_an_array_is_an_error_where_it_is_checked(tmp_path: Path) -> None:
    script = tmp_path / "outside.py"
    script.write_text(OUTSIDE)
    done = checked(tmp_path, str(script))
    assert done.returncode == 0, done.stderr
    element = "index outside the array in __main__.element, line 7"
    assert done.stdout.splitlines() == [
        *[element] * 5,
        *["index outside the array in __main__.write, line 15"] * 4,
        *["index outside the array in __main__.row, line 19"] * 2,
        *["eight bytes outside the array"] * 2,
    ]


@pytest.mark.slow
@pytest.mark.skipif(not IS_COMPILED, reason="about compiled code")
def test_compiled_kernels_stay_inside_their_arrays(tmp_path: Path) -> None:
    tests = ("tests/index/test_contract.py", "tests/context/test_nodes.py")
    chosen = "naive and (scan or be_tree) or agile and hash_table"
    done = checked(tmp_path, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests, "-k", chosen)
    assert done.returncode == 0, done.stdout[-3000:]
    assert " passed" in done.stdout
