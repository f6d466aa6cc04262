"""The kernels as plain Python, where reading beyond an array's end is an error.

Compiled code checks no bounds.  Run un-compiled, every index outside an array raises IndexError.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent


def run(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments],
        capture_output=True,
        text=True,
        cwd=TESTS.parent,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1", "MATCHWOOD_PROFILE": "fast"},
        check=False,
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        ("tests/encode/test_merge.py",),
        ("tests/encode/test_dict_plan.py", "-k", "random or split or room or batches"),
        ("tests/index/test_contract.py", "-k", "naive"),
        ("tests/index/test_be_tree.py",),
        ("tests/index/test_stateful.py", "-k", "be_tree"),
        ("tests/index/test_pst.py", "tests/index/test_ps_tree.py", "-k", "spaces_hold or tree"),
        ("tests/index/test_blocks.py", "-k", "not many_cut and not several and not damaged"),
        ("tests/index/test_terms.py", "-k", "not 5 and not square"),
    ],
    ids=[
        "merging",
        "dicts",
        "indexes",
        "be_tree",
        "be_tree changing",
        "predicate spaces",
        "blocks",
        "terms",
    ],
)
def test_kernels_stay_inside_their_arrays(arguments):
    # Hashes are meant to overflow; only plain NumPy warns of it.
    result = run(*arguments, "-W", "ignore:overflow encountered:RuntimeWarning")
    assert result.returncode == 0, result.stdout[-3000:]
    assert " passed" in result.stdout
