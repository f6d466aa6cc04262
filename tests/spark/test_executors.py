"""What the package asks of sessions."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

import pytest

import matchwood as mw
import matchwood.spark
from matchwood.engine.snapshots.versions import load_version, save_version
from matchwood.spark import executors, worker


def test_the_package_never_asks_for_a_spark_context() -> None:
    # Spark Connect has none
    files = list(Path(matchwood.spark.__file__).parent.glob("*.py"))
    assert len(files) > 20
    texts = {file.name: file.read_text(encoding="utf-8") for file in files}
    asking = re.compile(r"\.(sparkContext|_sc)\b")
    found = [name for name, text in texts.items() if asking.search(text)]
    assert found == []


class OneExecutor:
    """A session whose only executor unpacks archives into a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.conf = {"spark.app.id": str(folder)}

    def addArtifacts(self, path: str, archive: bool) -> None:  # noqa: N802 - Spark's name
        packed, _, name = path.partition("#")
        assert archive
        assert not (self.folder / name).exists(), "Spark sends no archive twice"
        with zipfile.ZipFile(packed) as opened:
            opened.extractall(self.folder / name)

    def archives(self) -> set[str]:
        return {each.name for each in self.folder.iterdir() if any(each.iterdir())}


@pytest.mark.slow
def test_executors_drop_what_no_version_needs_and_nothing_else(tmp_path: Path, monkeypatch) -> None:
    now = 1e9
    monkeypatch.setattr(executors.time, "time", lambda: now)
    monkeypatch.setattr(executors, "KEPT", 3)
    session = OneExecutor(tmp_path / "executor")
    session.folder.mkdir()
    monkeypatch.setattr(worker, "_shipped", lambda name: session.folder / name)
    matcher = mw.Matcher()
    matcher.add_many([(n, f"a = {n % 50}") for n in range(2500)])
    folders, locations = [], []

    def ship(folder: Path, expected: list[int]) -> worker.Location:
        location = executors.ship(session, folder)  # type: ignore[arg-type]
        assert location.open().match({"a": 7})[:2] == expected
        return location

    for n in range(2 * executors.KEPT):
        folders.append(tmp_path / str(n) / "snapshot")
        matcher.replace(7, f"a = 7 AND b IS NULL AND c <> {n}" if n % 2 else "a = 8")
        matcher = saved_again(matcher, folders)
        locations.append(ship(folders[n], [57, 107]))
        now += 1
    assert locations[-1].dropped == ()  # all were asked for in the last hour
    everything = session.archives()
    now += executors.HOUR + 1
    last = ship(folders[-1], [57, 107])
    kept = {name for each in locations[-executors.KEPT :] for name in names_of(each)}
    assert session.archives() == kept
    assert set(last.dropped) == everything - kept != set()
    shared = set(names_of(locations[0])) & set(names_of(locations[-1]))
    assert shared <= session.archives()
    again = ship(folders[0], [57, 107])  # sent again, under another name
    assert set(names_of(again)) - set(names_of(locations[0]))
    assert set(names_of(again)) <= session.archives()


def names_of(location: worker.Location) -> list[str]:
    assert location.shipped is not None
    return [location.shipped, *[archive for _, archive in location.segments]]


def saved_again(matcher: mw.Matcher, folders: list[Path]) -> mw.Matcher:
    """The next version, on the segments of the one before; loaded as the next increment does."""
    save_version(matcher, folders[-1], folders[-2] if len(folders) > 1 else None)
    return load_version(folders[-1])
