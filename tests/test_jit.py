"""Compiled code: refuses to allocate, is cached by what it is made of, says that it compiles."""

import os
import platform
import shutil
import subprocess
import sys
import textwrap
import zipfile
from pathlib import Path

import numpy as np
import pytest
from numba.core.errors import NumbaError

from matchwood.kernel import cache as kernel_cache
from matchwood.kernel import jit, store


def test_parts_have_no_machine_code_and_kernels_carry_that_of_parts_inside_parts():
    @jit.part
    def doubled(values, at):
        return values[at] + values[at]

    @jit.inlined
    def tripled(values, at):
        return doubled(values, at) + values[at]

    @jit.kernel
    def total(values):
        found = np.int64(0)
        for at in range(len(values)):
            found += doubled(values, at) * tripled(values, at)
        return found

    values = np.arange(5)
    assert total(values) == 6 * (values * values).sum()
    for part in (doubled, tripled):
        (result,) = part.overloads.values()
        assert result.library.get_pointer_to_function(result.fndesc.llvm_func_name) == 0
        assert list(result.library.get_defined_functions())  # what kernels are linked with


@pytest.mark.slow
def test_a_kernel_that_allocates_does_not_compile():
    def allocates(n):
        return np.zeros(n)[0]

    with pytest.raises(NumbaError, match="zeros"):
        jit.kernel(allocates)(3)
    assert jit.numba.njit(allocates)(3) == 0  # Numba itself has nothing against it


@pytest.mark.skipif(platform.machine() != "x86_64", reason="looks for an instruction of x86-64")
def test_either_is_an_instruction_where_a_choice_is_a_branch():
    """Else searches take several times as long, and nothing but a benchmark would tell."""

    def by_branch(words, key):
        low, n = np.int64(0), np.int64(len(words))
        while n > 1:
            half = n >> 1
            low += half if words[low + half] <= key else np.int64(0)
            n -= half
        return low

    def by_either(words, key):
        low, n = np.int64(0), np.int64(len(words))
        while n > 1:
            half = n >> 1
            low = jit.either(words[low + half] <= key, low + half, low)
            n -= half
        return low

    words, moves = np.arange(0, 100, 3), []
    for function in (by_branch, by_either):
        compiled = jit.numba.njit(function)  # kept code cannot be looked at
        assert [compiled(words, key) for key in (0, 2, 3, 50, 99)] == [0, 0, 1, 16, 33]
        (code,) = compiled.inspect_asm().values()
        moves.append(code.count("cmov"))
    assert moves[0] < moves[1]


def run(code, cache, **env):
    clean = {key: value for key, value in os.environ.items() if key != "MATCHWOOD_QUIET"}
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        check=True,
        env={**clean, "NUMBA_CACHE_DIR": str(cache), **env},
    )


FIRST_MATCH = """
    import matchwood as mw
    from matchwood.kernel.jit import compile_seconds
    m = mw.Matcher()
    m.add("s1", "price < 20")
    print(m.match({"price": 19.99}), compile_seconds() > 0)
"""


@pytest.fixture
def bare(tmp_path):
    """The path of a package without kernels that were compiled ahead."""
    package = Path(jit.__file__).parents[1]
    skipped = shutil.ignore_patterns("__pycache__", store.FOLDER)
    shutil.copytree(package, tmp_path / "bare" / "matchwood", ignore=skipped)
    return str(tmp_path / "bare")


@pytest.mark.slow
def test_compiling_is_told_once_and_not_repeated_from_the_cache(tmp_path, bare):
    first = run(FIRST_MATCH, tmp_path, PYTHONPATH=bare)
    assert first.stdout == "['s1'] True\n"
    assert first.stderr.count("compiling its kernels") == 1
    second = run(FIRST_MATCH, tmp_path, PYTHONPATH=bare)
    assert second.stdout == "['s1'] False\n"
    assert "compiling" not in second.stderr


ONE_KERNEL = """
    import numpy as np
    import matchwood
    from matchwood.encode.column_kernels import place_numbers
    from matchwood.kernel.jit import compile_seconds
    keys = np.zeros(2, np.int64)
    ceil, labels = np.array([1, 5]), np.array([10, 20])
    place_numbers(np.array([5, 3]), ceil, np.array([True, True]), labels, keys)
    print(".zip" in matchwood.__file__, keys.tolist(), compile_seconds() > 0)
"""


@pytest.mark.slow
def test_a_zipped_package_runs_and_is_cached(tmp_path):
    """As `spark-submit --py-files` sends it."""
    source = Path(jit.__file__).parents[2]
    packed = tmp_path / "matchwood.zip"
    with zipfile.ZipFile(packed, "w") as archive:
        for file in (source / "matchwood").rglob("*.py"):
            archive.write(file, file.relative_to(source))
    cache = tmp_path / "cache"
    for is_compiled in (True, False):
        done = run(ONE_KERNEL, cache, PYTHONPATH=str(packed))
        assert done.stdout == f"True [20, 11] {is_compiled}\n"


def test_a_changed_callee_gets_another_cache_folder(monkeypatch):
    folder_name = kernel_cache.folder_name.__wrapped__  # as a process with other sources sees it
    before = folder_name("matchwood.encode.expression_kernels")
    original = kernel_cache.source_of
    assert "matchwood.kernel.interval_kernels" in kernel_cache.sources_of(
        "matchwood.encode.expression_kernels", set()
    )
    monkeypatch.setattr(
        kernel_cache,
        "source_of",
        lambda name: (
            original(name) + (b"#" if name == "matchwood.kernel.interval_kernels" else b"")
        ),
    )
    assert folder_name("matchwood.encode.expression_kernels") != before
    assert folder_name("matchwood.kernel.interval_kernels") != before


WITHOUT_STDERR = """
    import io, sys
    import numpy as np
    sys.stderr = {stderr}
    if hasattr(sys.stderr, "close"):
        sys.stderr.close()
    from matchwood.encode.column_kernels import place_numbers
    keys = np.zeros(1, np.int64)
    place_numbers(np.array([5]), np.array([5]), np.array([True]), np.array([20]), keys)
    print(keys.tolist())
"""


@pytest.mark.slow
@pytest.mark.parametrize("stderr", ["None", "io.StringIO()"])
def test_without_a_stderr_kernels_compile_all_the_same(tmp_path, bare, stderr):
    done = run(WITHOUT_STDERR.format(stderr=stderr), tmp_path, PYTHONPATH=bare)
    assert done.stdout == "[20]\n"


def increment(x):
    return x + 1


def test_functions_without_a_module_compile_beside_us():
    function = type(increment)(increment.__code__, {})
    function.__module__ = None
    before = jit.compile_seconds()
    assert jit.numba.njit(function)(1) == 2
    assert jit.compile_seconds() == before


def test_packages_whose_names_begin_like_ours_are_not_ours(capsys, monkeypatch):
    function = type(increment)(increment.__code__, {})
    function.__module__ = "matchwood_extras.kernels"
    monkeypatch.setattr(jit._listener, "is_reported", False)
    before = jit.compile_seconds()
    assert jit.numba.njit(function)(1) == 2
    assert jit.compile_seconds() == before
    assert capsys.readouterr().err == ""


def test_a_part_has_one_variant_whatever_integers_its_callers_have():
    @jit.part
    def added(values, at, more, is_twice):
        found = values[at] + more
        return found + more if is_twice else found

    @jit.kernel
    def total(values, small, at):
        found = np.int64(0)
        for i in range(len(small)):
            found += added(values, small[i], 3, True)
        return found + added(values, at, small[0], False) + added(values, 0, at, at > 1)

    values, small = np.arange(5), np.array([1, 2], np.int32)
    assert total(values, small, 2) == (1 + 6) + (2 + 6) + (2 + 1) + (0 + 4)
    assert len(added.overloads) == 1


def test_unsigned_integers_and_floats_are_passed_as_they_are():
    @jit.part
    def half(value):
        return value >> np.uint64(1)

    @jit.part
    def doubled(value):
        return value + value

    @jit.kernel
    def both(words, numbers):
        return half(words[0]), doubled(numbers[0])

    assert both(np.array([2**64 - 1], np.uint64), np.array([0.25])) == (2**63 - 1, 0.5)


def test_a_part_may_call_itself():
    @jit.part
    def power(base, n):
        if n == 0:
            return np.int64(1)
        return base * power(base, n - 1)

    @jit.kernel
    def cube(values):
        return power(values[0], 3)

    assert cube(np.array([5], np.int32)) == 125
