"""A manifest may come from anywhere: whatever is odd about it is a FormatError that says what."""

import contextlib
import copy
import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

import matchwood as mw
from matchwood.engine.snapshots.manifest import checksum
from matchwood.engine.snapshots.snapshot import read_beside, verify

EVENTS = [{"title": "The Sun", "price": 3}, {"author": "A", "name": "me"}, {"title": 1}]
ODD = [None, True, 0, -1, 10**400, 1.5, float("nan"), "", "x", "../..", [], [[]], {}, {"a": {}}]

STRIDE = 1 if os.environ.get("MATCHWOOD_PROFILE") == "long" else 8
"""Of 15 values in each place every eighth is tried: other ones in the next place."""


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    m = mw.Matcher(schema={"day": "date"})
    m.add("a", "title LIKE '%Sun%' AND author IS NULL")
    m.add("b", "price < ctx.target + 1 OR name = ctx.name", context="user")
    m.set_context("user", {"target": 3, "name": "me"})
    path = tmp_path_factory.mktemp("snapshots") / "s"
    m.save(path)
    manifest = json.loads((path / "manifest.json").read_text())
    del manifest["checksum"]
    return path, manifest


def put(path, manifest):
    sealed = (
        {**manifest, "checksum": checksum(manifest)} if isinstance(manifest, dict) else manifest
    )
    (path / "manifest.json").write_text(json.dumps(sealed))


def use(m):
    """Match and change; attributes and ids may be others than those that were saved."""
    verbs = [
        *[lambda event=event: m.match(event) for event in EVENTS],
        lambda: m.replace("a", "title LIKE '%Sun' OR price = ctx.target", context="user"),
        lambda: m.remove("b"),
        lambda: m.set_context("user", {"target": 4}),
    ]
    for verb in verbs:
        with contextlib.suppress(mw.MatchwoodError):
            verb()


def is_refused(path):
    """Whether a snapshot cannot be loaded; anything but a FormatError fails the test."""
    try:
        m = mw.Matcher.load(path)
        use(m)
        read_beside(path, verify=True)
        verify(path)
    except mw.FormatError as error:
        return len(str(error)) < 500 or pytest.fail("a message that nobody reads")
    return False


def places(value, path=()):
    """Every place in a JSON value."""
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    for key, each in inner:
        if isinstance(each, (dict, list)):
            yield from places(each, (*path, key))
        else:
            yield (*path, key)


def changed(manifest, place, value):
    """A copy with another value in one place, or without it (value is `del`)."""
    manifest = copy.deepcopy(manifest)
    if not place:
        return value
    at = manifest
    for key in place[:-1]:
        at = at[key]
    if value == "del":
        del at[place[-1]]
    else:
        at[place[-1]] = value
    return manifest


def test_what_is_missing_is_named(saved):
    path, manifest = saved
    for key in ("generation", "settings", "files"):
        put(path, changed(manifest, (key,), "del"))
        with pytest.raises(mw.FormatError, match=rf"expected manifest\.{key}, found none"):
            mw.Matcher.load(path)
    put(path, changed(manifest, ("settings", "attributes", 0, "source"), "x"))
    with pytest.raises(
        mw.FormatError, match=r'a whole number at .*attributes\[0\]\.source, found "x"'
    ):
        mw.Matcher.load(path)


@pytest.mark.slow
def test_every_part_left_out_or_odd_is_refused_or_harmless(saved):
    path, manifest = saved
    tried = [
        (place, value)
        for place in places(manifest)
        for value in (["del", *ODD] if place else ODD)
    ][::STRIDE]  # fmt: skip
    refused = 0
    for place, value in tried:
        put(path, changed(manifest, place, value))
        refused += is_refused(path)
    assert refused > len(tried) // 2
    put(path, manifest)
    assert not is_refused(path)


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        '{"format":' * 100_000,
        "[" * 100_000 + "]" * 100_000,
        '{"format": "matchwood-snapshot", "version": ' + "9" * 10_000 + "}",
        '{"format": "matchwood-snapshot", "version": -1}',
        '{"format": "matchwood-snapshot", "version": 1e999}',
        '{"format": "matchwood-snapshot", "version": true}',
        '{"format": "matchwood-snapshot", "version": "1"}',
        '{"format": "matchwood-snapshot", "version": null}',
        '{"format": {"a": []}, "version": 1}',
        "\x00",
        "3",
        '"text"',
    ],
    ids=lambda text: text[:60],
)
def test_a_text_that_is_no_manifest_is_damaged(saved, text):
    path, manifest = saved
    (path / "manifest.json").write_text(text)
    with pytest.raises(mw.FormatError, match="damaged"):
        mw.Matcher.load(path)
    put(path, manifest)


def test_settings_nested_too_deeply_are_damaged(saved):
    path, manifest = saved
    deep = "[" * 900 + "]" * 900
    text = json.dumps({**manifest, "settings": {"config": "DEEP"}, "checksum": 0})
    (path / "manifest.json").write_text(text.replace('"DEEP"', deep))
    with pytest.raises(mw.FormatError, match="damaged"):
        mw.Matcher.load(path)
    put(path, manifest)


@pytest.mark.parametrize(
    "generation", ["..", ".", "", "/", "g-../..", "../g-0123456789ab", "g-0123456789ab/..", "\x00"]
)
def test_a_generation_stays_inside_its_folder(saved, generation):
    path, manifest = saved
    for found in (generation, str(path / manifest["generation"])):
        put(path, {**manifest, "generation": found})
        with pytest.raises(mw.FormatError, match="generation"):
            mw.Matcher.load(path)
    put(path, manifest)


@pytest.mark.parametrize("name", ["../always", "/always", "a/../always", "..\\always"])
def test_files_stay_inside_their_generation(saved, name):
    path, manifest = saved
    for part in ("files", "beside"):
        files = {**manifest[part], name: {"bytes": 1, "crc32": 1}}
        put(path, {**manifest, part: files})
        with pytest.raises(mw.FormatError, match="plain names"):
            mw.Matcher.load(path)
    put(path, manifest)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=10,
)


@pytest.mark.slow
@given(JSON, st.data())
def test_any_json_in_any_place_is_refused_or_harmless(saved, value, data):
    path, manifest = saved
    place = data.draw(st.sampled_from(list(places(manifest))))
    put(path, changed(manifest, place, value))
    is_refused(path)
    put(path, manifest)


def test_a_snapshot_of_the_version_before_is_read_and_its_indexes_built(saved):
    path, manifest = saved
    put(path, {**manifest, "version": 1})
    expected = mw.Matcher.load(path)
    put(path, manifest)
    loaded = mw.Matcher.load(path)
    for event in EVENTS[:2]:
        assert loaded.match(event) == expected.match(event)
    put(path, {**manifest, "version": 0})
    assert is_refused(path)
    put(path, manifest)
