"""All workloads by name; a new generator adds one line here."""

from __future__ import annotations

from importlib import import_module
from typing import Any, NamedTuple

from matchwood.errors import MatchwoodError
from matchwood.workload.interface import Workload

REGISTRY = {
    "abegen": "matchwood.workload.abegen:ABEGen",
    "ad_trees": "matchwood.workload.ad_trees:AdTrees",
    "ads": "matchwood.workload.ads:Ads",
    "begen": "matchwood.workload.begen:BEGen",
    "context": "matchwood.workload.context:Context",
    "bookshop": "matchwood.workload.bookshop_rows:BookshopRows",
    "pstree": "matchwood.workload.pstree:PSTreeWorkload",
    "qgrams": "matchwood.workload.qgrams:QGrams",
    "querylog": "matchwood.workload.querylog:QueryLog",
    "skew2d": "matchwood.workload.skew2d:Skew2D",
    "uniform": "matchwood.workload.uniform:Uniform",
}
"""Name -> module and class, imported at first use."""


class Listed(NamedTuple):
    """A line of the list of workloads."""

    name: str
    description: str
    presets: tuple[str, ...]


def find_workload(name: str, **changes: Any) -> Workload:
    """A workload by `name` or `name:preset`, some of its parameters changed.

    >>> find_workload("uniform:small", n_events=50).n_events
    50
    """
    generator, _, preset = name.partition(":")
    cls = _class(generator)
    if preset and preset not in cls.presets:
        raise MatchwoodError(
            f"expected a preset of {generator!r} among {', '.join(cls.presets)}, found {preset!r}"
        )
    return cls().with_parameters(**{**cls.presets.get(preset, {}), **changes})


def list_workloads() -> list[Listed]:
    """Every generator with its presets."""
    listed = []
    for name in sorted(REGISTRY):
        cls = _class(name)
        listed.append(Listed(name, (cls.__doc__ or "").partition("\n")[0], tuple(cls.presets)))
    return listed


def _class(name: str) -> type[Workload]:
    if name not in REGISTRY:
        raise MatchwoodError(
            f"expected a workload among {', '.join(sorted(REGISTRY))}, found {name!r}: "
            "write it as name or name:preset"
        )
    module, _, class_name = REGISTRY[name].partition(":")
    found: type[Workload] = getattr(import_module(module), class_name)
    return found
