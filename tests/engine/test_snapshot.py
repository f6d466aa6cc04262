"""A snapshot is the matcher again: same answers, changeable, shared, and refused when damaged."""

import json
import subprocess
import sys
import threading
from datetime import UTC, date, datetime
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given

import matchwood as mw
from inside import routing_of, table_of
from matchwood.engine.snapshots.snapshot import read_beside
from matchwood.kernel.jit import compile_seconds
from matchwood.workload.bookshop import Bookshop
from strategies import workloads

EVENTS = [
    {"price": 26, "genre": "classics", "title": "The Sun Also Rises"},
    {"price": 26.5, "genre": "poetry", "active": True},
    {"price": 2**53 + 1, "sold_at": datetime(2026, 1, 31, 12, tzinfo=UTC)},
    {"day": date(2026, 1, 31)},
    {},
]


def small_matcher():
    m = mw.Matcher(schema={"day": "date"})
    m.add("s1", "price BETWEEN 20 AND 40 AND genre = 'classics'")
    m.add(2, "price > 9007199254740992 OR genre IN ('poetry', 'drama')")
    m.add("sun", "title LIKE '%Sun%' AND author IS NULL")
    m.add("all", "TRUE")
    m.add("none", "price > 3 AND price < 2")
    m.add("flag", "active XOR price = 26")
    m.add("moment", "sold_at >= TIMESTAMP '2026-01-31 00:00:00'")
    m.add("nan", mw.attr("price") >= float("nan"))
    m.add("day", "day = DATE '2026-01-31'")
    return m


@pytest.fixture
def saved(tmp_path):
    m = small_matcher()
    m.save(tmp_path / "snapshot")
    return m, tmp_path / "snapshot"


def answers(m):
    return [m.match(event) for event in EVENTS]


@pytest.mark.parametrize("mmap", [True, False])
def test_a_loaded_matcher_answers_as_the_saved_one(saved, mmap):
    m, path = saved
    assert answers(mw.Matcher.load(path, mmap=mmap)) == answers(m)
    assert any(answers(m))


@pytest.mark.slow
@given(workloads())
def test_saving_and_loading_change_no_answer(tmp_path_factory, workload):
    schema, subscriptions, events = workload
    m = mw.Matcher(schema=schema)
    m.add_many(subscriptions)
    path = tmp_path_factory.mktemp("snapshots") / "s"
    m.save(path)
    loaded = mw.Matcher.load(path)
    assert list(loaded.match_many(events)) == list(m.match_many(events))
    assert loaded.schema == m.schema


def test_a_loaded_matcher_can_be_changed_without_touching_the_snapshot(saved):
    m, path = saved
    loaded = mw.Matcher.load(path)
    loaded.remove("s1")
    loaded.replace(2, "price < 1000")
    loaded.add("new", "genre = 'a genre nobody had' OR title LIKE '%Rises'")
    assert loaded.match(EVENTS[0]) == [2, "sun", "all", "new"]
    assert answers(mw.Matcher.load(path)) == answers(m)


def test_saving_again_replaces_the_snapshot_and_leaves_one_generation(saved):
    m, path = saved
    m.remove("all")
    m.save(path)
    assert answers(mw.Matcher.load(path)) == answers(m)
    assert len([each for each in path.iterdir() if each.is_dir()]) == 1


def test_a_mapped_matcher_survives_the_snapshot_being_replaced(saved):
    m, path = saved
    before = answers(m)
    loaded = mw.Matcher.load(path)
    m.remove("all")
    m.save(path)
    assert answers(loaded) == before


def test_saving_after_removals_keeps_order_and_drops_what_is_gone(tmp_path):
    m = mw.Matcher()
    m.add_many([(i, f"x = {i % 7}") for i in range(200)])
    m.remove_many(range(0, 200, 3))
    m.add("late", "x = 4")
    m.replace(4, "x <> 4")
    m.save(tmp_path / "s")
    loaded = mw.Matcher.load(tmp_path / "s")
    for x in range(7):
        assert loaded.match({"x": x}) == m.match({"x": x})
    assert loaded.match({"x": 4})[-1] == "late"
    assert len(loaded) == len(m)


def test_string_ids_of_a_snapshot_are_found_removed_and_explained(tmp_path):
    m = mw.Matcher()
    m.add_many([(f"sub-{i}", f"x = {i}") for i in range(500)])
    m.save(tmp_path / "s")
    loaded = mw.Matcher.load(tmp_path / "s")
    assert loaded.match({"x": 7}) == ["sub-7"]
    assert loaded.explain("sub-7", {"x": 8}).reasons == ("x = 7 is FALSE: x is 8",)
    loaded.remove("sub-7")
    assert loaded.match({"x": 7}) == []
    assert str(loaded.expression("sub-8")) == "x = 8"


def test_an_empty_matcher_can_be_saved_and_filled_after_loading(tmp_path):
    mw.Matcher().save(tmp_path / "s")
    loaded = mw.Matcher.load(tmp_path / "s")
    assert loaded.match({"x": 1}) == []
    loaded.add(1, "x = 1")
    assert loaded.match({"x": 1}) == [1]


@pytest.mark.slow
def test_another_process_maps_the_same_snapshot(saved):
    m, path = saved
    code = (
        "import sys, json, matchwood as mw\n"
        "m = mw.Matcher.load(sys.argv[1])\n"
        "print(json.dumps(m.match(json.loads(sys.argv[2]))))"
    )
    event = json.dumps(EVENTS[0])
    out = subprocess.run(
        [sys.executable, "-c", code, str(path), event], capture_output=True, text=True, check=True
    )
    assert json.loads(out.stdout) == m.match(EVENTS[0])


def test_a_newer_format_is_refused_with_what_to_do(saved):
    _, path = saved
    manifest = json.loads((path / "manifest.json").read_text())
    manifest["version"] = 999
    (path / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(mw.FormatError, match=r"version 999.*upgrade"):
        mw.Matcher.load(path)


def test_a_manifest_that_was_edited_is_refused(saved):
    _, path = saved
    manifest = json.loads((path / "manifest.json").read_text())
    manifest["settings"]["index"] = "other"
    (path / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(mw.FormatError, match="checksum"):
        mw.Matcher.load(path)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"format": "something else"}'])
def test_a_manifest_that_is_none_is_refused(saved, text):
    _, path = saved
    (path / "manifest.json").write_text(text)
    with pytest.raises(mw.FormatError, match="damaged"):
        mw.Matcher.load(path)


def arrays_of(path):
    return sorted(path.glob("g-*/*.npy"))


@pytest.mark.slow
def test_every_single_damaged_byte_is_noticed(saved):
    _, path = saved
    for file in arrays_of(path):
        data = file.read_bytes()
        broken = bytearray(data)
        broken[-1] ^= 0xFF
        file.write_bytes(broken)
        with pytest.raises(mw.FormatError, match=file.name):
            mw.Matcher.load(path)
        file.write_bytes(data)
    mw.Matcher.load(path)


@pytest.mark.parametrize("verify", [True, False])
def test_a_missing_or_cut_file_is_noticed_even_without_checksums(saved, verify):
    _, path = saved
    file = arrays_of(path)[0]
    data = file.read_bytes()
    file.write_bytes(data[:-1])
    with pytest.raises(mw.FormatError, match="damaged"):
        mw.Matcher.load(path, verify=verify)
    file.unlink()
    with pytest.raises(mw.FormatError, match="damaged"):
        mw.Matcher.load(path, verify=verify)


def test_arrays_beside_a_snapshot_are_kept_checked_and_replaced_with_it(tmp_path):
    matcher, path = mw.Matcher(), tmp_path / "snapshot"
    matcher.add("a", "x = 1")
    mine = {"weights": np.arange(5), "files": np.frombuffer(b"abc", np.uint8)}
    matcher.save(path, extra_arrays=mine)
    assert mw.Matcher.load(path).match({"x": 1}) == ["a"]
    found = read_beside(path, verify=True)
    assert {name: array.tolist() for name, array in found.items()} == {
        name: array.tolist() for name, array in mine.items()
    }
    (file,) = path.glob("g-*/beside/weights.npy")
    data = bytearray(file.read_bytes())
    data[-1] ^= 0xFF
    file.write_bytes(data)
    read_beside(path, verify=False)
    with pytest.raises(mw.FormatError, match=r"checksum of weights\.npy"):
        read_beside(path, verify=True)
    file.unlink()
    with pytest.raises(mw.FormatError, match=r"expected weights\.npy"):
        read_beside(path, verify=False)
    matcher.save(path)
    assert read_beside(path, verify=True) == {}
    assert not list(path.glob("g-*/beside"))


def test_no_snapshot_at_all_is_a_storage_error(tmp_path):
    with pytest.raises(mw.StorageError, match="expected a snapshot directory"):
        mw.Matcher.load(tmp_path / "nowhere")


def test_a_directory_with_other_files_is_never_overwritten(tmp_path):
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(mw.StorageError, match=r"thesis\.txt"):
        mw.Matcher().save(tmp_path)
    assert (tmp_path / "thesis.txt").read_text() == "years of work"


def test_a_save_that_fails_leaves_the_old_snapshot_whole(saved, monkeypatch):
    m, path = saved
    before = answers(m)
    m.remove("s1")

    def full_disk(*_args, **_kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "save", full_disk)
    with pytest.raises(mw.StorageError, match="No space left"):
        m.save(path)
    monkeypatch.undo()
    assert answers(mw.Matcher.load(path)) == before


@pytest.mark.slow
def test_readers_see_a_whole_snapshot_while_it_is_saved_again_and_again(tmp_path):
    path = tmp_path / "s"
    m = mw.Matcher()
    m.add_many([(i, "x = 1") for i in range(50)])
    m.save(path)
    stop = threading.Event()
    problems = []

    def save_repeatedly():
        try:
            for i in range(50, 62):
                m.add(i, "x = 1")
                m.save(path)
        except mw.MatchwoodError as error:
            problems.append(error)
        finally:
            stop.set()

    writer = threading.Thread(target=save_repeatedly)
    writer.start()
    seen = []
    while not stop.is_set():
        found = mw.Matcher.load(path).match({"x": 1})
        assert found == list(range(len(found)))
        seen.append(len(found))
    writer.join()
    assert problems == []
    assert seen == sorted(seen)
    assert seen[0] >= 50


def test_mapped_arrays_are_not_copied(saved):
    _, path = saved
    loaded = mw.Matcher.load(path)
    code = table_of(loaded).layout.code
    mapping = code
    while getattr(mapping, "base", None) is not None and isinstance(mapping.base, np.ndarray):
        mapping = mapping.base
    assert isinstance(mapping, np.memmap)
    assert Path(mapping.filename).samefile(next(path.glob("g-*/expression_code.npy")))


def test_mapped_arrays_are_of_the_types_that_kernels_were_compiled_for(saved):
    m, path = saved
    answers(m)
    before = compile_seconds()
    assert answers(mw.Matcher.load(path)) == answers(m)
    assert compile_seconds() == before


@pytest.mark.slow
@pytest.mark.parametrize("mmap", [True, False])
def test_a_loaded_tree_has_room_to_recycle_while_it_matches(tmp_path: Path, mmap: bool) -> None:
    shop = Bookshop(3)
    matcher = mw.Matcher(index="be_tree")
    matcher.add_many([(n, shop.subscription()) for n in range(3000)])
    events = [shop.event() for _ in range(500)]
    expected = list(matcher.match_many(events))
    matcher.save(tmp_path / "books")
    loaded = mw.Matcher.load(tmp_path / "books", mmap=mmap)
    tree = routing_of(loaded).indexes[0]
    for _ in range(20):
        assert list(loaded.match_many(events)) == expected
    assert tree.stats()["recycled"] > 0
    assert len(tree.tree.pending) >= len(tree.tree.leaf_of)


@pytest.mark.slow
@pytest.mark.parametrize("index", ["auto", "be_tree", "pst_bloom", "a_tree"])
@pytest.mark.parametrize("last", ["conjunctions", "trees"])
def test_an_index_is_kept_when_others_hold_newer_attributes_and_predicates(index, last, tmp_path):
    m = mw.Matcher(index)
    m.add_many([(i, f"a{i % 5} = {i} AND b >= {i % 7}") for i in range(2_100)])
    m.add_many([(f"t{i}", f"a{i % 5} = {i} OR (b < {i % 7} AND c = {i})") for i in range(2_100)])
    for i in range(400):
        one = f"new{i} = {i} AND more{i} < {i}"
        m.add(f"n{i}", one if last == "conjunctions" else f"({one}) OR b = -{i}")
    events = [{"a1": 6, "b": 3}, {"new7": 7, "more7": 1}, {"b": -9}, {"c": 4, "b": 1}]
    m.save(tmp_path / "kept")
    again = mw.Matcher.load(tmp_path / "kept")
    assert [again.match(event) for event in events] == [m.match(event) for event in events]
    again.remove("n3")
    again.add("n3", "new3 = 3")
    assert again.match({"new3": 3, "more3": 9}) == ["n3"]


def test_an_error_of_load_names_the_folder_as_it_was_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for path in ("none", "some/where/none", str(tmp_path / "none"), "."):
        with pytest.raises(mw.StorageError) as caught:
            mw.Matcher.load(path)
        assert f"found none at {path!r}" in str(caught.value)
