"""Suites: what to measure, as data.

A suite is a TOML file in `bench/suites`; its name is the file's.

    description = "..."

    [[indexes]]                     one row of the table each
    index   = "be_tree"             a name of the registry, or "null"
    label   = "be_tree, small"      what the table calls it; the index's name unless given
    config  = { max_cap = 5 }       settings of the index
    build   = "bulk"                or "insert": from empty, `chunk` subscriptions at a call
    chunk   = 1000
    events  = 100                   at most so many events; for baselines that are slow
    presets = ["small"]             only there

    [presets.small]
    workload       = "uniform:small"
    repetitions    = 5              timed passes over the events
    seconds        = 60             at most so long for all passes of an index in a case
    checked_events = 200            compare so many events with scan; all unless given
    delete         = 0.1            afterwards delete this share of subscriptions, timed

    [[presets.small.cases]]         points of a series; one case without changes unless given
    label    = "dense"
    indexes  = ["scan"]             only these labels
    workload = "uniform:smoke"      another workload
    n_attributes = 400              anything else: a parameter of the workload
"""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from matchwood.bench.kept import check_preset
from matchwood.errors import MatchwoodError
from matchwood.workload import Workload, find_workload

BULK, INSERT = "bulk", "insert"

Made = TypeVar("Made")


@dataclass(frozen=True, kw_only=True)
class IndexSpec:
    """One index with its settings: a row of the table."""

    index: str
    label: str = ""
    config: Mapping[str, Any] = field(default_factory=dict)
    build: str = BULK
    chunk: int = 1_000
    events: int | None = None
    presets: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Case:
    """One workload: a point of a series."""

    label: str
    workload: str
    changes: Mapping[str, Any]
    indexes: tuple[str, ...] = ()

    def generator(self, seed: int | None = None) -> Workload:
        changes = dict(self.changes) if seed is None else {**self.changes, "seed": seed}
        return find_workload(self.workload, **changes)


@dataclass(frozen=True, kw_only=True)
class Preset:
    """How much of a suite to run."""

    cases: tuple[Case, ...]
    workload: str = ""
    repetitions: int = 5
    seconds: float = 60.0
    checked_events: int | None = None
    delete: float = 0.0


@dataclass(frozen=True)
class Suite:
    name: str
    description: str
    indexes: tuple[IndexSpec, ...]
    presets: Mapping[str, Preset]

    def preset(self, name: str) -> Preset:
        check_preset(f"suite {self.name!r}", name, self.presets)
        return self.presets[name]

    def rows(self, preset: str, case: Case, only: tuple[str, ...] = ()) -> list[IndexSpec]:
        """The indexes that a case measures."""
        return [
            each
            for each in self.indexes
            if (not each.presets or preset in each.presets)
            and (not case.indexes or each.label in case.indexes)
            and (not only or each.label in only or each.index in only)
        ]


class Listed(NamedTuple):
    """A line of the list of suites."""

    name: str
    description: str
    presets: tuple[str, ...]


def list_suites() -> list[Listed]:
    """Every suite that comes with the package."""
    found = [(name, tomllib.loads(_text(name))) for name in _names()]
    return [Listed(name, data["description"], tuple(data["presets"])) for name, data in found]


def find_suite(name: str) -> Suite:
    """A suite by name, or from a file of your own: a path that ends in .toml."""
    if name.endswith(".toml"):
        path = Path(name)
        if not path.is_file():
            raise MatchwoodError(f"expected a suite file, found nothing at {name}")
        return read_suite(path.stem, path.read_text(encoding="utf-8"))
    if name not in _names():
        raise MatchwoodError(
            f"expected a suite among {', '.join(_names())}, or a .toml file, found {name!r}: "
            "`matchwood bench list` describes them"
        )
    return read_suite(name, _text(name))


def _text(name: str) -> str:
    return (files("matchwood.bench") / "suites" / f"{name}.toml").read_text(encoding="utf-8")


def _names() -> list[str]:
    folder = files("matchwood.bench") / "suites"
    names = [each.name for each in folder.iterdir()]
    return sorted([name.removesuffix(".toml") for name in names if name.endswith(".toml")])


def read_suite(name: str, text: str) -> Suite:
    """A suite from TOML; everything in it is checked here, before anything is measured."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise MatchwoodError(f"suite {name!r}: expected TOML, found an error: {error}") from None
    where = f"suite {name!r}"
    check_keys(where, data, {"description", "indexes", "presets"})
    if not (data.get("indexes") and data.get("presets")):
        raise MatchwoodError(f"{where}: expected [[indexes]] and [presets.NAME], found none")
    indexes = tuple(_index(where, each) for each in data["indexes"])
    presets = {key: _preset(f"{where}, preset {key!r}", v) for key, v in data["presets"].items()}
    suite = Suite(name, data.get("description", ""), indexes, presets)
    _check_names(where, suite)
    return suite


def _index(where: str, data: dict[str, Any]) -> IndexSpec:
    spec = _make(where + ", indexes", IndexSpec, data)
    if spec.build not in (BULK, INSERT):
        raise MatchwoodError(
            f"{where}, index {spec.index!r}: expected build = 'bulk' or 'insert', "
            f"found {spec.build!r}"
        )
    label = spec.label or spec.index
    return dataclasses.replace(spec, label=label, presets=tuple(spec.presets))


def _preset(where: str, data: dict[str, Any]) -> Preset:
    cases = data.get("cases") or [{}]
    filled = [_case(where, data.get("workload", ""), each) for each in cases]
    preset = _make(where, Preset, {**data, "cases": tuple(filled)})
    if preset.repetitions < 1 or not 0 <= preset.delete < 1:
        raise MatchwoodError(f"{where}: expected repetitions >= 1 and 0 <= delete < 1")
    for case in filled:
        case.generator()  # an unknown workload or parameter is an error now
    return preset


def _case(where: str, workload: str, data: dict[str, Any]) -> Case:
    if not isinstance(data, dict):
        raise MatchwoodError(f"{where}: expected a table for each case, found {data!r}")
    known_fields = {"label", "workload", "indexes"}
    return Case(
        label=data.get("label", ""),
        workload=data.get("workload", workload),
        changes={key: value for key, value in data.items() if key not in known_fields},
        indexes=tuple(data.get("indexes", ())),
    )


def _make(where: str, cls: Callable[..., Made], data: dict[str, Any]) -> Made:
    fields = dataclasses.fields(cls)  # type: ignore[arg-type]
    check_keys(where, data, {each.name for each in fields})
    needed = [each.name for each in fields if MISSING is each.default is each.default_factory]
    missing = sorted(set(needed) - data.keys())
    if missing:
        raise MatchwoodError(f"{where}: expected also {', '.join(missing)}, found none")
    return cls(**data)


def check_keys(where: str, data: Mapping[str, Any], known: set[str]) -> None:
    """Raise where a table of a TOML file has other keys than it may have."""
    unknown = sorted(data.keys() - known)
    if unknown:
        raise MatchwoodError(
            f"{where}: expected keys among {', '.join(sorted(known))}, found {', '.join(unknown)}"
        )


def _check_names(where: str, suite: Suite) -> None:
    labels = [each.label for each in suite.indexes]
    named = {
        label for preset in suite.presets.values() for c in preset.cases for label in c.indexes
    }
    unknown = sorted(named - set(labels))
    unknown += sorted({p for each in suite.indexes for p in each.presets} - suite.presets.keys())
    if unknown:
        raise MatchwoodError(f"{where}: expected names that exist, found {', '.join(unknown)}")
    if len(set(labels)) < len(labels):
        raise MatchwoodError(f"{where}: expected a label of its own for every index")
