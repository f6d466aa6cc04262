"""Settings of the A-Tree."""

from __future__ import annotations

from dataclasses import dataclass

from matchwood.index.a_tree.nodes import Settings
from matchwood.index.core.config import IndexConfig

SELECTIVITY, RANDOM = "selectivity", "random"
MATCHING = ON_DEMAND, ZERO_SUPPRESSION, THREE_VALUED = (
    "on_demand",
    "zero_suppression",
    "three_valued",
)


@dataclass(frozen=True, kw_only=True)
class ATreeConfig(IndexConfig):
    """What can be set.

    share         equal subexpressions are one node; without it the other three have no effect
    reorganise    a new expression is built from existing nodes where they fit (algorithm 2)
    self_adjust   existing nodes are built anew around a new one that fits into them (algorithm 3)
    binary        every operator has two children: elements of a node are paired one by one, in the
                  order of their numbers, and pairs are shared (section 6.2).  Takes `share`; the
                  two above have no effect, and nodes stay as they are.  For comparison
    rehang        a node that is no longer used gives its children to its parents
    access        which child of an AND gives access to it: the rarest by "selectivity", or "random"
    search_limit  parents of a child looked at in a search: more find more to share, in more time
    id_bits       of an expression's id; fewer make collisions, for tests
    matching      "on_demand": an AND is queued by one child and then tests the others (5.2.2);
                  "zero_suppression": every TRUE goes to all parents (5.2.1);
                  "three_valued": FALSE as well (5.1); the last two are for comparison
    """

    share: bool = True
    reorganise: bool = True
    self_adjust: bool = True
    binary: bool = False
    rehang: bool = True
    access: str = SELECTIVITY
    search_limit: int = 128
    id_bits: int = 31
    matching: str = ON_DEMAND

    def __post_init__(self) -> None:
        for name in ("share", "reorganise", "self_adjust", "binary", "rehang"):
            self._expect_flag(name)
        self._expect("binary", self.share or not self.binary, "False without share")
        self._expect_one("access", SELECTIVITY, RANDOM)
        self._expect_one("matching", *MATCHING)
        self._expect_integer("search_limit", 1, 2**20)
        self._expect_integer("id_bits", 0, 31)

    def for_kernels(self) -> Settings:
        return Settings(
            int(self.share),
            int(self.share and self.reorganise and not self.binary),
            int(self.share and self.self_adjust and not self.binary),
            int(self.binary),
            int(self.rehang and not self.binary),
            int(self.access == RANDOM),
            self.search_limit,
            self.id_bits,
        )
