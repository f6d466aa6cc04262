"""The memory of `be_tree`: its arrays, how they grow, and the scratch of changes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from matchwood.index.be_tree.change import fill_directory
from matchwood.index.be_tree.nodes import (
    C_FREE,
    C_HIGH,
    C_WIDTH,
    N_C,
    N_COUNTS,
    P_FREE,
    P_HIGH,
    P_WIDTH,
    Scratch,
    Search,
    TreeLayout,
)
from matchwood.kernel.arrays import bytes_of, doubled, grown, restored, writable
from matchwood.kernel.interval_kernels import MAX_KEY, MIN_KEY
from matchwood.kernel.posting_kernels import TOP, PostingLayout
from matchwood.kernel.postings import (
    closed_up,
    new_postings,
    with_attributes,
    with_words,
)

_NO_SPAN = np.array([MAX_KEY, MIN_KEY])


def tree_of(layout: Mapping[str, np.ndarray]) -> TreeLayout:
    """The tree of the arrays of a snapshot, with an empty p-directory, which is made anew."""
    left_out = ("directory", "postings")
    arrays = {name: layout[name] for name in TreeLayout._fields if name not in left_out}
    postings = restored(PostingLayout, layout, "posting_")
    return TreeLayout(**arrays, directory=np.empty(0, np.int32), postings=postings)


class TreeMemory:
    """A tree that begins as an empty root, and its scratch.

    Not an `Owner`: the tree holds its postings, so that kernels take both as one argument.
    """

    def __init__(self, max_cap: int) -> None:
        self.tree = _new_tree(max_cap)
        self.longest = 0
        """Most predicates of any expression held so far."""
        self.scratch = _new_scratch()
        self.make_scratch()

    @property
    def nbytes(self) -> int:
        return bytes_of(self.tree)

    @property
    def is_writeable(self) -> bool:
        return bool(self.tree.c.flags.writeable)

    @property
    def is_sparse(self) -> bool:
        """Whether most of what was used is free again."""
        tree = self.tree
        return bool(tree.count[C_HIGH] > 64 and tree.count[N_C] * 4 < tree.count[C_HIGH])

    def take(self, tree: TreeLayout) -> None:
        """Take over the arrays of a snapshot; the p-directory is made anew.

        Free segments are dropped: the links between them were not checked.
        """
        free = np.full(len(tree.postings.free), -1, np.int64)
        directory = np.full(doubled(8, 2 * len(tree.p)), -1, np.int32)
        postings = tree.postings._replace(free=free)
        self.tree = tree._replace(directory=directory, postings=postings)
        fill_directory(self.tree)
        self.make_scratch()

    def thaw(self) -> None:
        """Copy arrays that cannot be written."""
        tree = self.tree
        if not self.is_writeable:
            arrays = [array.copy() for array in tree[:-1]]
            self.tree = TreeLayout._make([*arrays, writable(tree.postings)])
        self.make_places(len(tree.leaf_of), len(tree.attr_n), self.longest)

    def arrays(self) -> dict[str, np.ndarray]:
        """The layout, without room to grow."""
        if self.is_writeable:
            self.close_up()
        tree = self.tree
        n_c, n_p = int(tree.count[C_HIGH]), int(tree.count[P_HIGH])
        kept = {
            "c": n_c,
            "span": n_c,
            "p": n_p,
            "grid": n_p,
            "todo": 0,
            "pending": 0,
            "directory": 0,
        }
        arrays = {
            name: array[: kept.get(name, len(array))]
            for name, array in tree._asdict().items()
            if name != "postings"
        }
        for name, array in tree.postings._asdict().items():
            arrays[f"posting_{name}"] = array[:n_c] if name == "lists" else array
        return arrays

    # ── growing ─────────────────────────────────────────────────────────────────────────────────

    def close_up(self) -> None:
        postings = closed_up(self.tree.postings, int(self.tree.count[C_HIGH]))
        self.tree = self.tree._replace(postings=postings)

    def make_places(self, n_slots: int, n_attributes: int, longest: int) -> None:
        """Room for slots and attributes."""
        tree = self.tree
        self.longest = max(self.longest, longest)
        has_stacks = len(tree.pending) >= len(tree.leaf_of) and len(tree.todo) >= len(tree.c)
        if n_slots <= len(tree.leaf_of) and n_attributes <= len(tree.attr_n) and has_stacks:
            return  # the usual case of a single insertion, kept short
        n_attributes = doubled(len(tree.attr_n), n_attributes)
        places = doubled(len(tree.leaf_of), n_slots)
        span = np.tile(_NO_SPAN, (n_attributes, 1))
        span[: len(tree.attr_span)] = tree.attr_span
        self.tree = tree._replace(
            attr_span=span,
            attr_n=grown(tree.attr_n, n_attributes),
            leaf_of=grown(tree.leaf_of, places, -1),
            pending=grown(tree.pending, places),
            todo=grown(tree.todo, len(tree.c)),
            postings=with_attributes(tree.postings, n_attributes),
        )
        self.make_scratch()

    def make_nodes(self, n_p: int) -> None:
        """Room for so many more p-nodes."""
        while self.tree.count[P_HIGH] + n_p > len(self.tree.p):
            self._grow_p_nodes()
        while self.tree.count[C_HIGH] + n_p > len(self.tree.c):
            self._grow_c_nodes()
        self.make_scratch()

    def make_words(self, n_words: int) -> None:
        """Room in the postings for so many more words; what is not used costs nothing."""
        postings = self.tree.postings
        word = grown(postings.word, int(postings.count[TOP]) + n_words)
        self.tree = self.tree._replace(postings=postings._replace(word=word))

    def grow(self) -> None:
        """After a kernel found something missing: nodes (see `has_nodes`), else words."""
        tree = self.tree
        if tree.count[C_HIGH] + 2 * self.longest + 2 > len(tree.c):
            self._grow_c_nodes()
        elif tree.count[P_HIGH] == len(tree.p):
            self._grow_p_nodes()
        else:
            postings = with_words(tree.postings, int(tree.count[C_HIGH]))
            self.tree = tree._replace(postings=postings)
        self.make_scratch()

    def _grow_c_nodes(self) -> None:
        tree = self.tree
        size = 2 * len(tree.c) + 2 * self.longest
        self.tree = tree._replace(
            c=grown(tree.c, size),
            span=grown(tree.span, size),
            todo=grown(tree.todo, size),
            postings=tree.postings._replace(lists=grown(tree.postings.lists, size)),
        )

    def _grow_p_nodes(self) -> None:
        tree = self.tree
        size = 2 * max(len(tree.p), 2)
        self.tree = tree._replace(
            p=grown(tree.p, size),
            grid=grown(tree.grid, size),
            directory=np.full(doubled(len(tree.directory), 2 * size), -1, np.int32),
        )
        fill_directory(self.tree)

    # ── scratch ─────────────────────────────────────────────────────────────────────────────────

    def make_scratch(self) -> None:
        """Scratch as long as the tree needs it; what was learnt about nodes is kept."""
        tree = self.tree
        n_attributes, n_c = len(tree.attr_n), len(tree.c)
        old = self.scratch
        self.scratch = Scratch(
            tally=grown(old.tally, n_attributes),
            share=grown(old.share, n_attributes),
            path=grown(old.path, n_attributes, -1),
            skip=grown(old.skip, n_attributes),
            stack=grown(old.stack, 2 * n_c + 1),
            visits=grown(old.visits, n_c),
            discarded=grown(old.discarded, n_c),
            score=grown(old.score, len(tree.p)),
            blame=grown(old.blame, n_attributes),
        )


def new_search() -> Search:
    """What a search writes to, for a tree of no nodes."""
    return Search(
        stack=np.zeros(8, np.int32),
        posted=np.full(8, -1, np.int64),
        visits=np.zeros(4, np.int64),
        discarded=np.zeros(4, np.int64),
        noted=np.zeros(4, np.int32),
        count=np.zeros(1, np.int64),
    )


def with_room(search: Search, n_c: int, n_attributes: int) -> Search:
    """The same arrays, long enough for a tree of n_c c-nodes; what was noted is kept."""
    if n_c <= len(search.visits) and n_attributes <= len(search.posted):
        return search
    n_c = doubled(len(search.visits), n_c)
    return Search(
        stack=grown(search.stack, 2 * n_c + 1),
        posted=grown(search.posted, doubled(len(search.posted), n_attributes), -1),
        visits=grown(search.visits, n_c),
        discarded=grown(search.discarded, n_c),
        noted=grown(search.noted, n_c),
        count=search.count,
    )


def _new_scratch() -> Scratch:
    return Scratch(
        tally=np.zeros(4, np.int32),
        share=np.zeros(4, np.float64),
        path=np.full(4, -1, np.int32),
        skip=np.zeros(4, np.int8),
        stack=np.zeros(4, np.int32),
        visits=np.zeros(0, np.int64),
        discarded=np.zeros(0, np.int64),
        score=np.zeros(0, np.float64),
        blame=np.zeros(0, np.float64),
    )


def _new_tree(max_cap: int) -> TreeLayout:
    tree = TreeLayout(
        c=np.zeros((4, C_WIDTH), np.int32),
        span=np.zeros((4, 2), np.int64),
        p=np.zeros((4, P_WIDTH), np.int32),
        grid=np.zeros((4, 2), np.int64),
        directory=np.full(8, -1, np.int32),
        attr_span=np.tile(_NO_SPAN, (4, 1)),
        attr_n=np.zeros(4, np.int64),
        leaf_of=np.full(16, -1, np.int32),
        todo=np.zeros(4, np.int32),
        pending=np.zeros(16, np.int32),
        count=np.zeros(N_COUNTS, np.int64),
        postings=new_postings(),
    )
    tree.c[0] = (-1, -1, -1, -1, -1, 0, max_cap, 0, 0)
    tree.span[0] = MIN_KEY, MAX_KEY
    tree.count[[C_HIGH, N_C]] = 1
    tree.count[[C_FREE, P_FREE]] = -1
    return tree
