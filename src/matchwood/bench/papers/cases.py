"""Cases: the experiments of five papers, as data.

One TOML file a paper, in `suites/papers`:

    paper = "BE-Tree"

    [presets.small]                 limits of this paper's rows; see `Limits`
    events = 40

    [series.be]                     a line of a figure, a row of a table
    name    = "BE"                  what the paper calls it
    index   = "be_tree"             a name of the registry
    config  = { max_cap = 20 }
    build   = "insert"              or "bulk"; `chunk` subscriptions at a call
    changes = { beta = 1.0 }        of the workload, for this series alone
    scaled  = ["false_positives"]   settings that grow and shrink with the subscriptions
    ours    = true                  not in the paper: drawn, and left out of "all others"

    [[case]]                        one experiment; several figures may show it
    id       = "5a"
    runner   = "index"              context, burst, stabbing, transition, sharing, external
    workload = "begen:workload-size"
    changes  = { distribution = "zipf" }
    sweep    = "workload-size"      points of the workload's own sweep, or
    points   = [{ n_attributes = 50 }, { config = { max_cap = 5 } }, { workload = "x", x = "X" }]
    axis     = "n_subscriptions"    the key of a point that the figure shows; "config.max_cap"
    series   = ["be", "k_index"]
    scale    = { small = 0.05 }     subscriptions of a preset, as a share of the paper's
    only     = { small = [0, 2] }   points of a preset, by number
    preset   = { smoke = { burst = ... } }       changes of the workload in one preset

    [[case.figure]]
    panel   = "Figure 5 (a)"
    title   = "Matching time by number of subscriptions, uniform"
    metric  = "us_per_event"
    paper   = { be = [4.75, 84.0] } the paper's own numbers, one for each metric of a table
    claims  = [{ rule = "faster", who = "be", factor = 5.0, says = "80 % better than the next" }]
    differs = "why ours may differ"

`claims.py` lists the rules.
"""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from matchwood.bench.papers.claims import Claim
from matchwood.bench.suite import check_keys
from matchwood.errors import MatchwoodError
from matchwood.index.core.registry import find_index
from matchwood.workload import Workload, find_workload

NAME, EXTERNAL = "papers", "external"
SUITES = {NAME: ("be_tree", "ps_tree", "vcr", "a_tree", "agile"), EXTERNAL: (EXTERNAL,)}
"""Files by suite; `external` has programs that are not ours."""

PRESETS = ("smoke", "small", "paper")
RUNNERS = ("index", "context", "burst", "stabbing", "transition", "sharing", "external")


@dataclass(frozen=True, kw_only=True)
class Limits:
    """How much of each row a preset measures.

    events         at most so many events a pass
    checked        events whose answers are compared
    repetitions    timed passes
    pass_seconds   a pass has as many events as fit; at least one
    row_seconds    build, check and passes; a row that takes longer is a labelled point
    megabytes      a row's own memory; one that needs more is a labelled point
    most           at most so many subscriptions; a larger point is labelled and not tried
    least          at least so many, whatever the scale
    scale          share of the paper's subscriptions
    ends           only the first and the last point of an axis
    """

    events: int = 40
    checked: int = 10
    repetitions: int = 3
    pass_seconds: float = 0.5
    row_seconds: float = 30.0
    megabytes: int = 4_000
    most: int = 20_000_000
    least: int = 100
    scale: float = 1.0
    ends: bool = False


DEFAULTS = {
    "smoke": Limits(events=4, checked=4, repetitions=1, pass_seconds=0.05, row_seconds=8.0,
                    megabytes=2_000, most=600, scale=0.0005, ends=True),
    "small": Limits(scale=0.05, repetitions=5, row_seconds=20.0),
    "paper": Limits(events=1_000, checked=50, repetitions=5, pass_seconds=20.0, row_seconds=900.0,
                    megabytes=16_000),
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Series:
    """One method with its settings: a line of a figure."""

    id: str
    index: str
    name: str = ""
    config: Mapping[str, Any] = field(default_factory=dict)
    build: str = "bulk"
    chunk: int = 1_000
    changes: Mapping[str, Any] = field(default_factory=dict)
    scaled: tuple[str, ...] = ()
    ours: bool = False


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A panel: what it draws, what the paper says about it."""

    panel: str
    title: str
    metric: str = "us_per_event"
    metrics: tuple[str, ...] = ()
    series: tuple[str, ...] = ()
    table: bool = False
    axis: str = ""
    linear: bool = False
    claims: tuple[Claim, ...] = ()
    paper: Mapping[str, Sequence[float]] = field(default_factory=dict)
    differs: str = ""

    @property
    def shown(self) -> tuple[str, ...]:
        return self.metrics or (self.metric,)


@dataclass(frozen=True, kw_only=True)
class Case:
    """One experiment: points, and what is measured at each."""

    paper: str
    id: str
    workload: str
    axis: str
    points: tuple[Mapping[str, Any], ...]
    series: tuple[Series, ...]
    figures: tuple[Figure, ...]
    runner: str = "index"
    changes: Mapping[str, Any] = field(default_factory=dict)
    scale: Mapping[str, float] = field(default_factory=dict)
    only: Mapping[str, Sequence[int]] = field(default_factory=dict)
    preset: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def key(self) -> str:
        return f"{self.paper}/{self.id}"

    def numbers(self, preset: str, limits: Limits) -> list[int]:
        """Which points a preset measures."""
        n = len(self.points)
        if preset in self.only:
            return list(self.only[preset])
        return sorted({0, n - 1}) if limits.ends else list(range(n))

    def x(self, point: int) -> Any:
        """The value of a point on the axis, as in the paper."""
        value: Any = self.points[point]
        for name in self.axis.split("."):
            value = value[name] if isinstance(value, Mapping) and name in value else None
        if value is None and self.axis:
            value = find_workload(self.workload, **self.changes).parameters().get(self.axis)
        return "" if value is None else value

    def config(self, point: int, series: Series, preset: str, limits: Limits) -> dict[str, Any]:
        """Settings of the index at a point; `series.scaled` are scaled as the subscriptions are."""
        config = dict(series.config)
        given = self.points[point].get("config", {})
        if given:  # a point's settings go to the indexes that have them
            known = {each.name for each in dataclasses.fields(find_index(series.index).Config)}
            config |= {name: value for name, value in given.items() if name in known}
        share = self.scale.get(preset, limits.scale)
        for name in series.scaled:
            config[name] = max(1, round(config[name] * share))
        return config

    def at(
        self, point: int, series: Series, preset: str, limits: Limits, seed: int | None = None
    ) -> tuple[Workload, int]:
        """The workload of a point, scaled, and the number of subscriptions in the paper."""
        known_fields = ("config", "workload", "x")
        changes = {k: v for k, v in self.points[point].items() if k not in known_fields}
        changes = {**self.changes, **changes, **series.changes, **self.preset.get(preset, {})}
        if seed is not None:
            changes["seed"] = seed
        found = find_workload(self.points[point].get("workload", self.workload), **changes)
        whole = found.n_subscriptions
        n = max(limits.least, round(whole * self.scale.get(preset, limits.scale)))
        if preset == "smoke":
            n = min(n, limits.most)
        sized: dict[str, Any] = {"n_subscriptions": n}
        for name in ("pool", "population"):  # what is shared stays shared as often
            if name in found.parameters():
                sized[name] = max(1_000, round(found.parameters()[name] * n / whole))
        if self.runner not in ("context", "burst", "external"):
            sized["n_events"] = limits.events
        return found.with_parameters(**sized), whole


@dataclass(frozen=True, kw_only=True)
class Paper:
    id: str
    name: str
    series: Mapping[str, Series]
    presets: Mapping[str, Limits]
    cases: tuple[Case, ...]


@cache
def read_papers(suite: str = NAME) -> tuple[Paper, ...]:
    """All papers of a suite; an unknown name is an error here, before anything is measured."""
    folder = files("matchwood.bench") / "suites" / NAME
    return tuple(
        read_paper(each, (folder / f"{each}.toml").read_text(encoding="utf-8"))
        for each in SUITES[suite]
    )


def read_paper(name: str, text: str) -> Paper:
    """A paper's cases from TOML."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise MatchwoodError(f"paper {name!r}: expected TOML, found an error: {error}") from None
    check_keys(f"paper {name!r}", data, {"paper", "presets", "series", "case"})
    series = {key: _series(f"paper {name!r}", key, each) for key, each in data["series"].items()}
    presets = {
        key: dataclasses.replace(base, **data.get("presets", {}).get(key, {}))
        for key, base in DEFAULTS.items()
    }
    cases = tuple(_case(name, series, each) for each in data["case"])
    keys = [each.id for each in cases]
    panels = [figure.panel for each in cases for figure in each.figures]
    for what, found in (("id", keys), ("panel", panels)):
        twice = sorted({each for each in found if found.count(each) > 1})
        if twice:
            raise MatchwoodError(f"paper {name!r}: expected one {what} each, found {twice} again")
    return Paper(id=name, name=data["paper"], series=series, presets=presets, cases=cases)


def _series(where: str, key: str, data: Mapping[str, Any]) -> Series:
    check_keys(f"{where}, series {key!r}", data, {f.name for f in dataclasses.fields(Series)})
    scaled = tuple(data.get("scaled", ()))
    return Series(**{"name": key, **data, "id": key, "scaled": scaled})


def _case(paper: str, series: Mapping[str, Series], data: dict[str, Any]) -> Case:
    where = f"paper {paper!r}, case {data.get('id')!r}"
    known = {f.name for f in dataclasses.fields(Case)} - {"paper", "figures"}
    check_keys(where, data, known | {"sweep", "figure"})
    unknown = sorted(set(data["series"]) - series.keys())
    if unknown or data.get("runner", "index") not in RUNNERS:
        raise MatchwoodError(f"{where}: expected series and a runner that exist, found {unknown}")
    given = {k: v for k, v in data.items() if k not in ("figure", "sweep", "series", "points")}
    points = data.get("points", [{}])
    if "sweep" in data:
        sweeps = getattr(type(find_workload(data["workload"])), "sweeps", {})
        if data["sweep"] not in sweeps:
            raise MatchwoodError(f"{where}: expected a sweep among {', '.join(sweeps)}")
        points = sweeps[data["sweep"]]
    figures = tuple(_figure(where, series, each) for each in data["figure"])
    made: dict[str, Any] = {"axis": "", "workload": "", **given}
    lines = tuple(series[each] for each in data["series"])
    return Case(paper=paper, points=tuple(points), series=lines, figures=figures, **made)


def _figure(where: str, series: Mapping[str, Series], data: dict[str, Any]) -> Figure:
    check_keys(where, data, {f.name for f in dataclasses.fields(Figure)})
    claims = tuple(Claim.read(f"{where}, {data['panel']}", each) for each in data.get("claims", ()))
    named = {who for claim in claims for who in (*claim.who, *claim.than)}
    unknown = sorted((named | set(data.get("paper", {}))) - series.keys())
    if unknown:
        raise MatchwoodError(f"{where}: expected claims about series that exist, found {unknown}")
    tuples: dict[str, Any] = {
        name: tuple(data[name]) for name in ("metrics", "series") if name in data
    }
    made: dict[str, Any] = {**data, **tuples, "claims": claims}
    return Figure(**made)
