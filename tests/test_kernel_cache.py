"""Compiled kernels are read only from a folder of this user, and only as they were written."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from matchwood.kernel import cache as kernel_cache
from matchwood.kernel import jit

OTHER_USER = 12345

as_root = pytest.mark.skipif(
    not hasattr(os, "getuid") or os.getuid() != 0, reason="only root can give files away"
)


def doubled(x):
    return x * 2


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A cache of its own for one test."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    kernel_cache.cache_root.cache_clear()
    yield tmp_path / "cache"
    kernel_cache.cache_root.cache_clear()


def first_call():
    """Whether a new process would take the kernel from the cache; always the right answer."""
    compiled = jit.kernel(doubled)
    assert compiled(21) == 42
    return sum(compiled.stats.cache_hits.values()) == 1


def cut(data):
    return data[: len(data) // 2]


def emptied(_data):
    return b""


def one_bit(data):
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]


def other(_data):
    return b"cos\nsystem\n(S'exit 3'\ntR."  # a pickle that runs a command


@pytest.mark.parametrize("damage", [cut, emptied, one_bit, other])
def test_a_damaged_cache_file_is_compiled_again_and_replaced(folder, damage):
    assert not first_call()
    assert first_call()
    (file,) = folder.rglob("*.nbc")
    file.write_bytes(damage(file.read_bytes()))
    assert not first_call()
    assert first_call()


def test_an_entry_of_another_signature_under_the_same_number_is_not_taken(folder):
    """As two processes leave it that compile at the same time."""
    assert not first_call()
    (file,) = folder.rglob("*.nbc")
    mine = file.read_bytes()
    jit.kernel(doubled)(2.5)
    (second,) = set(folder.rglob("*.nbc")) - {file}
    second.write_bytes(mine)
    assert jit.kernel(doubled)(2.5) == 5.0


def test_a_cache_that_names_a_class_which_is_gone_counts_as_empty(folder):
    assert not first_call()
    (file,) = folder.rglob("*.nbc")
    gone = b"cmatchwood.kernel.jit\nNoSuchClass\n."  # a pickle that names a class
    file.write_bytes(kernel_cache.hashlib.sha256(gone).digest() + gone)
    assert not first_call()
    assert first_call()


def test_a_cache_that_cannot_be_written_does_not_stop_the_first_call(folder):
    folder.write_text("a file where the folder should be")
    assert not first_call()
    assert not first_call()


def test_the_users_cache_is_made_private(tmp_path):
    umask = os.umask(0)
    try:
        made = kernel_cache.folder_of_user(tmp_path / "a" / "b")
    finally:
        os.umask(umask)
    assert made == (tmp_path / "a" / "b" / "matchwood" / "kernels").resolve()
    while made != tmp_path.resolve():
        assert made.stat().st_mode & 0o777 == 0o700
        made = made.parent


def premade(home, mode=0o755):
    folder = home / "matchwood" / "kernels"
    folder.mkdir(parents=True)
    folder.chmod(mode)
    return folder


@as_root
@pytest.mark.parametrize("level", ["matchwood/kernels", "matchwood", "."])
def test_a_folder_of_another_user_is_not_used(tmp_path, level):
    premade(tmp_path)
    assert kernel_cache.folder_of_user(tmp_path) is not None
    os.chown(tmp_path / level, OTHER_USER, OTHER_USER)
    assert kernel_cache.folder_of_user(tmp_path) is None


@pytest.mark.parametrize("mode", [0o775, 0o757, 0o777])
@pytest.mark.parametrize("level", ["matchwood/kernels", "matchwood", "."])
def test_a_folder_that_others_can_write_to_is_not_used(tmp_path, level, mode):
    premade(tmp_path)
    (tmp_path / level).chmod(mode)
    assert kernel_cache.folder_of_user(tmp_path) is None


def test_a_link_to_a_folder_is_not_used(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    premade(tmp_path / "home").rmdir()
    (tmp_path / "home" / "matchwood" / "kernels").symlink_to(tmp_path / "elsewhere")
    assert kernel_cache.folder_of_user(tmp_path / "home") is None


def test_a_users_folder_under_a_shared_one_with_the_sticky_bit_is_used(tmp_path):
    tmp_path.chmod(0o1777)
    assert kernel_cache.folder_of_user(tmp_path / "mine") is not None
    tmp_path.chmod(0o777)
    assert kernel_cache.folder_of_user(tmp_path / "mine") is None


def test_no_home_and_no_room_mean_no_cache(tmp_path):
    assert kernel_cache.folder_of_user(None) is None
    (tmp_path / "file").touch()
    assert kernel_cache.folder_of_user(tmp_path / "file" / "below") is None


def test_the_folder_beside_the_package_is_no_more_open_than_the_package(tmp_path):
    tmp_path.chmod(0o755)
    kernels = kernel_cache.folder_in_package(tmp_path)
    assert kernels == tmp_path / "__pycache__" / "kernels"
    kernels.chmod(0o777)
    assert kernel_cache.folder_in_package(tmp_path) is None
    kernels.rmdir()
    (tmp_path / "elsewhere").mkdir()
    kernels.symlink_to(tmp_path / "elsewhere")
    assert kernel_cache.folder_in_package(tmp_path) is None


@as_root
def test_a_folder_of_another_user_beside_the_package_is_not_used(tmp_path):
    kernels = kernel_cache.folder_in_package(tmp_path)
    os.chown(kernels, OTHER_USER, OTHER_USER)
    assert kernel_cache.folder_in_package(tmp_path) is None


ONE_KERNEL = """
import numpy as np
from matchwood.encode.column_kernels import place_numbers
keys = np.zeros(2, np.int64)
ceil, labels = np.array([1, 5]), np.array([10, 20])
place_numbers(np.array([5, 3]), ceil, np.array([True, True]), labels, keys)
print(keys.tolist())
"""


@pytest.mark.slow
@pytest.mark.parametrize("hostile", ["temporary", "user"])
def test_a_zipped_package_uses_no_folder_that_was_laid_out_for_it(tmp_path, hostile):
    source = Path(jit.__file__).parents[2]
    packed = tmp_path / "matchwood.zip"
    with zipfile.ZipFile(packed, "w") as archive:
        for file in (source / "matchwood").rglob("*.py"):
            archive.write(file, file.relative_to(source))
    trap = premade(tmp_path / hostile, 0o777)
    (tmp_path / "temporary").mkdir(exist_ok=True)
    quiet = ("NUMBA_CACHE_DIR", "MATCHWOOD_QUIET")
    done = subprocess.run(
        [sys.executable, "-c", ONE_KERNEL],
        capture_output=True,
        text=True,
        check=True,
        env={
            **{key: value for key, value in os.environ.items() if key not in quiet},
            "PYTHONPATH": str(packed),
            "TMPDIR": str(tmp_path / "temporary"),
            "XDG_CACHE_HOME": str(tmp_path / "user") if hostile == "user" else "/dev/null/none",
        },
    )
    assert done.stdout == "[20, 11]\n"
    assert list(trap.iterdir()) == []
    assert "set NUMBA_CACHE_DIR" in done.stderr
