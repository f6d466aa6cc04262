"""All indexes by name; a new one adds one line here and is then held to every contract test."""

from __future__ import annotations

from importlib import import_module

from matchwood.errors import IndexBuildError
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
    "vcr": "matchwood.index.vcr.index:VCR",
    "r_tree": "matchwood.index.baselines.r_tree:RTree",
    "agile": "matchwood.context.filters:Agile",
    "no_index": "matchwood.context.filters:NoIndex",
    "eager": "matchwood.context.filters:Eager",
    "partial": "matchwood.context.filters:Partial",
    "gbu": "matchwood.context.filters:Gbu",
}
"""Name -> module and class, imported at first use so that no index pays for another's kernels."""


def find_index(name: str) -> type[Index]:
    """The class of an index."""
    try:
        module, _, class_name = REGISTRY[name].partition(":")
    except KeyError:
        raise IndexBuildError(
            f"expected one of {', '.join(sorted(REGISTRY))} as an index, found {name!r}"
        ) from None
    found: type[Index] = getattr(import_module(module), class_name)
    return found
