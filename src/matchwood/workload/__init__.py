"""Workloads: subscriptions and events from a seed, as the papers describe them.

A workload is a frozen dataclass whose fields are its parameters:

    schema()                     types of its attributes
    subscriptions(first, last)   an Arrow table of predicates: id, attribute, operator, values
                                 (for trees: id and expr)
    events(first, last)          an Arrow table of entries: event, attribute, value
    n_subscriptions, n_events    how many rows belong to it
    seed                         another seed, other rows

Every value derives from (seed, table, column, row) alone, through `draws`: however the rows are cut
into chunks or spread over machines, they are the same.

    find_workload("uniform:small", n_events=50)       a preset, with a parameter changed
    load_subscriptions(workload)                      straight into an expression table

To add a generator: subclass `Workload`, draw with `Draws`, name it in `registry.REGISTRY`; the
tests of determinism take it from there.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matchwood.workload.abegen import ABEGen
    from matchwood.workload.ad_trees import AdTrees
    from matchwood.workload.ads import Ads
    from matchwood.workload.begen import BEGen
    from matchwood.workload.draws import Draws
    from matchwood.workload.interface import Workload
    from matchwood.workload.loading import load_events, load_subscriptions
    from matchwood.workload.pstree import PSTreeWorkload
    from matchwood.workload.qgrams import QGrams
    from matchwood.workload.querylog import QueryLog
    from matchwood.workload.registry import find_workload, list_workloads
    from matchwood.workload.skew2d import Skew2D
    from matchwood.workload.tables import event_dicts, wide_events
    from matchwood.workload.uniform import Uniform

_HOME = {
    "ABEGen": "abegen",
    "AdTrees": "ad_trees",
    "Ads": "ads",
    "BEGen": "begen",
    "Draws": "draws",
    "PSTreeWorkload": "pstree",
    "QGrams": "qgrams",
    "QueryLog": "querylog",
    "Skew2D": "skew2d",
    "Uniform": "uniform",
    "Workload": "interface",
    "event_dicts": "tables",
    "find_workload": "registry",
    "list_workloads": "registry",
    "load_events": "loading",
    "load_subscriptions": "loading",
    "wide_events": "tables",
}

__all__ = [
    "ABEGen",
    "AdTrees",
    "Ads",
    "BEGen",
    "Draws",
    "PSTreeWorkload",
    "QGrams",
    "QueryLog",
    "Skew2D",
    "Uniform",
    "Workload",
    "event_dicts",
    "find_workload",
    "list_workloads",
    "load_events",
    "load_subscriptions",
    "wide_events",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'matchwood.workload' has no attribute {name!r}")
    return getattr(import_module(f"matchwood.workload.{_HOME[name]}"), name)
