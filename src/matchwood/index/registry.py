"""All indexes by name; a new one adds one line here and is then held to every contract test."""

from __future__ import annotations

from importlib import import_module

from matchwood.errors import IndexBuildError
from matchwood.index.protocol import Index

REGISTRY = {
    "a_tree": "matchwood.index.a_tree:ATree",
    "interval_id": "matchwood.index.interval_id:IntervalId",
    "dewey_id": "matchwood.index.dewey_id:DeweyId",
    "bop": "matchwood.index.bop:BoP",
    "translation": "matchwood.index.translation:Translation",
    "bdd": "matchwood.index.bdd:BDD",
    "be_tree": "matchwood.index.be_tree:BETree",
    "scan": "matchwood.index.scan:Scan",
    "counting": "matchwood.index.counting:Counting",
    "propagation": "matchwood.index.propagation:Propagation",
    "k_index": "matchwood.index.k_index:KIndex",
    "op_index": "matchwood.index.op_index:OpIndex",
    "pst_bloom": "matchwood.index.pst_bloom:PSTBloom",
    "pst_hash": "matchwood.index.pst_hash:PSTHash",
    "gryphon": "matchwood.index.gryphon:Gryphon",
    "vcr": "matchwood.index.vcr:VCR",
    "r_tree": "matchwood.index.r_tree:RTree",
    "agile": "matchwood.context.partners:Agile",
    "no_index": "matchwood.context.partners:NoIndex",
    "eager": "matchwood.context.partners:Eager",
    "partial": "matchwood.context.partners:Partial",
    "gbu": "matchwood.context.partners:Gbu",
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
