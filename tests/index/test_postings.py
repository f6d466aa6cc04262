"""Posting lists: entries, segments, and predicates in few words."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given

from encode.world import World
from matchwood.index.be_tree.index import BETree
from matchwood.index.be_tree.shape import held, in_use
from matchwood.kernel.posting_cell_kernels import INSIDE, INTERVAL, KIND, OUTSIDE, WIDE, WIDE_SET
from matchwood.kernel.posting_kernels import (
    FREED,
    ROOM,
    START,
    TOP,
    USED,
    N,
)
from matchwood.kernel.postings import closed_up
from matchwood.lang.parser import parse
from naive import matches
from searching import slots_of
from strategies import seeds

NOTHING = np.empty(0, np.int32)


def kinds_of(world: World, texts: list[str]) -> list[int]:
    """The kind of the only cell of each expression, all in one list."""
    slots = world.store([parse(text) for text in texts])
    index = BETree.build(world.table, NOTHING, max_cap=1000)
    index.insert(slots)
    start, used, _, _ = index.tree.postings.lists[0]
    word = index.tree.postings.word[start : start + used].tolist()
    kinds, at = [], 0
    while at < len(word):
        kinds.append(word[at + 1] >> KIND)
        at += word[at] >> 32
    return kinds


@pytest.mark.parametrize(
    ("type_", "texts", "kind"),
    [
        ("int", ["a = 5", "a < 9", "a >= 3", "a BETWEEN 1 AND 4000000", "a IS NOT NULL"], INTERVAL),
        ("int", ["a IN (1, 3, 64)", "a IN (1, 5)", "a IN (1, 66, 128)"], INSIDE),
        ("int", ["a <> 1", "a NOT IN (1, 3, 64)", "a NOT IN (1, 65, 128)"], OUTSIDE),
        ("int", ["a IN (1, 129)", "a NOT IN (1, 129)", "a < 9 AND a <> 3"], WIDE_SET),
    ],
)
def test_a_predicate_takes_the_form_that_fits(type_, texts, kind):
    assert kinds_of(World({"a": type_}), texts) == [kind] * len(texts)


def test_ends_far_from_the_first_one_are_wide():
    kinds = kinds_of(World({"a": "int"}), ["a = 0", "a = 4000000", "a = 5000000", "a > -5000000"])
    assert kinds == [INTERVAL, INTERVAL, WIDE, WIDE]


@pytest.mark.slow
@given(seed=seeds())
def test_all_forms_agree_with_their_sets(seed):
    rng = Random(seed)
    far = rng.choice((1, 50, 10**6, 10**12))
    values = [rng.randint(-3, 3) * far + rng.randint(-3, 3) for _ in range(12)]
    texts = [f"a {op} {v}" for op in ("=", "<>", "<", ">=") for v in values]
    for _ in range(6):
        low, high = sorted(rng.sample(values, 2))
        texts += [f"a IN ({low}, {high}, {low + 2})", f"a NOT IN ({low}, {high}, {low + 2})"]
        texts += [f"a BETWEEN {low} AND {high}", f"a NOT BETWEEN {low} AND {high}"]
    world = World({"a": "int"})
    exprs = [parse(text) for text in texts]
    index = BETree.build(world.table, NOTHING, max_cap=rng.choice((2, 1000)))
    index.insert(world.speaking("conjunctions", world.store(exprs)))
    for value in values + [v + 1 for v in values]:
        found = slots_of(index, world.events([{"a": value}])).tolist()
        for slot, text in enumerate(texts):
            assert (slot in found) == matches(parse(text), {"a": value}), text


@given(seed=seeds())
def test_segments_neither_overlap_nor_get_lost(seed):
    rng = Random(seed)
    world = World({"a": "int", "b": "int"})
    slots = world.store(
        [parse(f"a = {rng.randint(0, 9)} AND b < {rng.randint(0, 9)}") for _ in range(120)]
    )
    index = BETree.build(world.table, NOTHING, max_cap=3)
    index.insert(slots)
    index.delete(np.array(rng.sample(slots.tolist(), 60), np.int32))
    tree = index.tree
    before = {c: held(tree, c) for c in in_use(tree).tolist()}
    for postings in (tree.postings, closed_up(tree.postings, len(tree.c))):
        rows = postings.lists[in_use(tree)]
        rows = rows[rows[:, ROOM] > 0]
        rows = rows[np.argsort(rows[:, START])]
        assert (rows[:, USED] <= rows[:, ROOM]).all()
        assert (rows[:-1, START] + rows[:-1, ROOM] <= rows[1:, START]).all()
        assert rows[:, ROOM].sum() + postings.count[FREED] == postings.count[TOP]
        assert rows[:, N].sum() == 60
    assert postings.count[FREED] == 0
    closed = tree._replace(postings=postings)
    assert {c: held(closed, c) for c in in_use(tree).tolist()} == before
