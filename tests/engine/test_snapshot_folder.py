"""A snapshot touches only what is its own, has one writer at a time, and leaves nothing behind."""

import os
import resource
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

import matchwood as mw
from matchwood.engine.snapshots import snapshot
from matchwood.engine.snapshots.generations import MARKER
from matchwood.engine.snapshots.snapshot import read_beside, verify


def matcher_of(n, value=1):
    m = mw.Matcher(index="scan")
    m.add_many([(i, f"x = {value}") for i in range(n)])
    return m


def long_ago(path):
    then = time.time() - 30 * 24 * 3600
    os.utime(path, (then, then))


def generations(path):
    return sorted(each.name for each in path.glob("g-*"))


# -- only what is its own --------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["g-photos", "g-0123456789ab", "g-notes.txt"])
def test_a_folder_with_names_like_ours_is_not_ours(tmp_path, name):
    if name.endswith("txt"):
        (tmp_path / name).write_text("years of work")
    else:
        (tmp_path / name).mkdir()
    long_ago(tmp_path / name)
    with pytest.raises(mw.StorageError, match=name):
        matcher_of(1).save(tmp_path)
    assert [each.name for each in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("name", ["g-photos", "g-0123456789ab", "thesis.txt"])
def test_what_others_put_into_a_snapshot_stays(tmp_path, name):
    path = tmp_path / "s"
    matcher_of(1).save(path)
    (path / name).mkdir()
    (path / name / "1.jpg").write_text("a picture")
    long_ago(path / name)
    for n in (2, 3):
        matcher_of(n).save(path)
    assert (path / name / "1.jpg").read_text() == "a picture"
    assert len(mw.Matcher.load(path)) == 3


@pytest.mark.parametrize("text", ["{}", '{"name": "my web site"}', "not JSON", "[]"])
def test_a_manifest_of_another_program_is_never_replaced(tmp_path, text):
    (tmp_path / "manifest.json").write_text(text)
    (tmp_path / "index.html").write_text("<html>")
    with pytest.raises(mw.StorageError, match="expected an empty directory or a snapshot"):
        matcher_of(1).save(tmp_path)
    assert (tmp_path / "manifest.json").read_text() == text


def test_a_damaged_snapshot_of_ours_is_replaced_as_a_whole(tmp_path):
    path = tmp_path / "s"
    matcher_of(1).save(path)
    (path / "manifest.json").write_text("{")
    matcher_of(2).save(path)
    assert len(mw.Matcher.load(path)) == 2
    assert len(generations(path)) == 1


def test_a_failed_save_over_a_damaged_snapshot_leaves_its_files(tmp_path, monkeypatch):
    path = tmp_path / "s"
    matcher_of(1).save(path)
    before = generations(path)
    (path / "manifest.json").write_text("{")
    fill_the_disk(monkeypatch, after=3)
    with pytest.raises(mw.StorageError):
        matcher_of(2).save(path)
    assert generations(path) == before


def test_a_snapshot_of_before_the_marker_is_replaced(tmp_path):
    path = tmp_path / "s"
    matcher_of(1).save(path)
    (path / MARKER).unlink()
    matcher_of(2).save(path)
    assert len(generations(path)) == 1
    assert len(mw.Matcher.load(path)) == 2


@pytest.mark.parametrize("name", ["../weights", "a/b", "", "..\\weights"])
def test_arrays_beside_have_plain_names(tmp_path, name):
    with pytest.raises(mw.StorageError, match="plain name"):
        matcher_of(1).save(tmp_path / "s", extra_arrays={name: np.arange(3)})
    assert list(tmp_path.iterdir()) == []


# -- nothing left behind ---------------------------------------------------------------------------


def fill_the_disk(monkeypatch, after, error=None):
    save, done = np.save, []

    def fail(file, array, **options):
        done.append(file)
        if len(done) > after:
            file.write(b"half an array")
            raise error or OSError(28, "No space left on device")
        save(file, array, **options)

    monkeypatch.setattr(np, "save", fail)


@pytest.mark.parametrize("error", [None, KeyboardInterrupt(), MemoryError()])
@pytest.mark.parametrize("after", [0, 5])
def test_a_failed_save_leaves_nothing_behind(tmp_path, monkeypatch, error, after):
    path = tmp_path / "s"
    matcher_of(3).save(path)
    before = sorted(path.rglob("*"))
    changed = matcher_of(4)
    fill_the_disk(monkeypatch, after, error)
    with pytest.raises(mw.StorageError if error is None else type(error)):
        changed.save(path)
    monkeypatch.undo()
    assert sorted(path.rglob("*")) == before
    assert len(mw.Matcher.load(path)) == 3


def test_a_failed_first_save_leaves_no_folder(tmp_path, monkeypatch):
    fill_the_disk(monkeypatch, after=2)
    with pytest.raises(mw.StorageError, match="No space left"):
        matcher_of(1).save(tmp_path / "s")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_real_limit_of_the_file_system_is_a_storage_error(tmp_path):
    path = tmp_path / "s"
    matcher_of(3).save(path)
    before = sorted(path.rglob("*"))
    large = matcher_of(20_000)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, hard))
    try:
        with pytest.raises(mw.StorageError, match="cannot write the snapshot"):
            large.save(path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert sorted(path.rglob("*")) == before
    assert len(mw.Matcher.load(path)) == 3


def start(code, path, **options):
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), str(path)],
        stdout=subprocess.PIPE,
        text=True,
        **options,
    )


STUCK = """
    import sys, time
    import numpy as np
    import matchwood as mw
    m = mw.Matcher(index="scan")
    m.add(1, "x = 1")
    save, done = np.save, []
    def stuck(file, array, **options):
        save(file, array, **options)
        done.append(1)
        if len(done) == 5:
            print("inside", flush=True)
            time.sleep(600)
    np.save = stuck
    m.save(sys.argv[1])
"""


@pytest.mark.slow
@pytest.mark.parametrize("is_first", [True, False])
def test_what_a_killed_save_left_goes_with_the_next_one(tmp_path, is_first):
    path = tmp_path / "s"
    if not is_first:
        matcher_of(3).save(path)
    with start(STUCK, path) as saver:
        assert saver.stdout.readline() == "inside\n"
        assert len(generations(path)) == 1 + (not is_first)
        saver.send_signal(signal.SIGKILL)
    if not is_first:
        assert len(mw.Matcher.load(path)) == 3
    matcher_of(4).save(path)
    assert len(generations(path)) == 1
    assert len(mw.Matcher.load(path)) == 4


@pytest.mark.slow
def test_a_second_writer_waits_for_the_first(tmp_path):
    path = tmp_path / "s"
    waiting = threading.Thread(target=matcher_of(4).save, args=(path,))
    with start(STUCK, path) as saver:
        assert saver.stdout.readline() == "inside\n"
        waiting.start()
        waiting.join(0.3)
        assert waiting.is_alive()
        assert len(generations(path)) == 1
        saver.send_signal(signal.SIGKILL)
    waiting.join(120)
    assert not waiting.is_alive()
    assert len(mw.Matcher.load(path)) == 4
    assert len(generations(path)) == 1


def test_where_files_cannot_be_locked_a_save_cleans_up_after_itself(tmp_path, monkeypatch):
    def no_locks(*_):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr("fcntl.flock", no_locks)
    for n in (1, 2, 3):
        matcher_of(n).save(tmp_path / "s")
    assert len(generations(tmp_path / "s")) == 1
    assert len(mw.Matcher.load(tmp_path / "s")) == 3


MANY_SAVES = """
    import sys
    import matchwood as mw
    m = mw.Matcher(index="scan")
    m.add_many([(i, "x = 1") for i in range(20)])
    for i in range(10):
        m.save(sys.argv[1])
"""


@pytest.mark.slow
def test_two_writers_leave_one_generation_and_readers_never_fail(tmp_path):
    path = tmp_path / "s"
    matcher_of(20).save(path, extra_arrays={"own": np.arange(3)})
    savers = [start(MANY_SAVES, path) for _ in range(2)]
    most = n_read = 0
    while any(saver.poll() is None for saver in savers):
        assert len(mw.Matcher.load(path).match({"x": 1})) == 20
        verify(path)
        read_beside(path, verify=True)
        most = max(most, len(generations(path)))
        n_read += 1
    for saver in savers:
        assert saver.wait() == 0
        saver.stdout.close()
    assert n_read > 0
    assert most <= 2 * 3  # the one in use, the one being written, each with its manifest aside
    assert len(generations(path)) == 1


@pytest.mark.slow
def test_a_reader_follows_a_generation_that_vanishes(tmp_path, monkeypatch):
    path = tmp_path / "s"
    matcher_of(3).save(path)
    read, left = snapshot._read_array, [3]

    def overtaken(file, mmap):
        if left[0]:
            left[0] -= 1
            matcher_of(4).save(path)
        return read(file, mmap)

    monkeypatch.setattr(snapshot, "_read_array", overtaken)
    assert len(mw.Matcher.load(path)) == 4


# -- nothing from outside --------------------------------------------------------------------------


def test_a_generation_that_is_a_link_is_refused(tmp_path):
    path = tmp_path / "s"
    matcher_of(3).save(path)
    (generation,) = path.glob("g-*")
    generation.rename(tmp_path / "outside")
    generation.symlink_to(tmp_path / "outside")
    with pytest.raises(mw.FormatError, match="damaged"):
        mw.Matcher.load(path)


def test_an_array_that_is_a_link_is_refused(tmp_path):
    path = tmp_path / "s"
    matcher_of(3).save(path)
    (file,) = path.glob("g-*/expression_code.npy")
    file.rename(tmp_path / "outside.npy")
    file.symlink_to(tmp_path / "outside.npy")
    with pytest.raises(mw.FormatError, match="damaged"):
        mw.Matcher.load(path)
