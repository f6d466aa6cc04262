"""All indexes by name; a new one adds one line here and is then held to every contract test.

A later layer registers its own indexes (`matchwood.context`).
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING

from matchwood.errors import IndexBuildError

if TYPE_CHECKING:
    from matchwood.index.core.protocol import Index

REGISTRY = {
    "a_tree": "matchwood.index.a_tree.index:ATree",
    "blocks": "matchwood.index.blocks.index:BlockIndex",
    "interval_id": "matchwood.index.baselines.interval_id:IntervalId",
    "dewey_id": "matchwood.index.baselines.dewey_id:DeweyId",
    "bop": "matchwood.index.baselines.bop:BoP",
    "translation": "matchwood.index.baselines.translation:Translation",
    "bdd": "matchwood.index.baselines.bdd:BDD",
    "be_tree": "matchwood.index.be_tree.index:BETree",
    "scan": "matchwood.index.scan.index:Scan",
    "counting": "matchwood.index.baselines.counting:Counting",
    "propagation": "matchwood.index.baselines.propagation:Propagation",
    "k_index": "matchwood.index.baselines.k_index:KIndex",
    "op_index": "matchwood.index.baselines.op_index:OpIndex",
    "pst_bloom": "matchwood.index.pst.bloom:PSTBloom",
    "pst_hash": "matchwood.index.pst.hash:PSTHash",
    "gryphon": "matchwood.index.baselines.gryphon:Gryphon",
    "terms": "matchwood.index.terms.index:TermIndex",
    "vcr": "matchwood.index.vcr.index:VCR",
    "r_tree": "matchwood.index.baselines.r_tree:RTree",
}
"""Name -> module and class, imported at first use so that no index pays for another's kernels."""


def register(indexes: Mapping[str, str]) -> None:
    """Add indexes of a later layer: name -> module and class."""
    REGISTRY.update(indexes)


def find_index(name: str, others: tuple[str, ...] = ()) -> type[Index]:
    """The class of an index; an IndexBuildError lists the names, and what else a caller takes."""
    try:
        module, _, class_name = REGISTRY[name].partition(":")
    except KeyError:
        raise IndexBuildError(
            f"expected one of {', '.join((*others, *sorted(REGISTRY)))} as an index, found {name!r}"
        ) from None
    found: type[Index] = getattr(import_module(module), class_name)
    return found
