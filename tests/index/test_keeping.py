"""Going on after a snapshot is the same as never having made one."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings

import matchwood as mw
from encode.world import found, mixed_expressions, small_world
from searching import search
from strategies import seeds

pytestmark = pytest.mark.slow

FEWER = settings(max_examples=max(5, settings.default.max_examples // 4))


@FEWER
@given(seed=seeds())
def test_a_restored_index_takes_copies_of_what_it_holds_and_lets_both_go(index_class, seed):
    world, _, raw = small_world(seed)
    held = world.speaking(index_class.language)
    index = index_class.build(world.table, held)
    restored = index_class.restore(
        world.table, {name: array.copy() for name, array in index.layout().items()}
    )
    copies = world.store([world.exprs[slot] for slot in held.tolist()])
    encoded, both = world.events(raw), np.concatenate([held, copies])
    restored.insert(copies)
    assert found(search(restored, encoded)) == world.expected(both, raw)
    gone, left = np.concatenate([held[::2], copies[::2]]), np.union1d(held[1::2], copies[1::2])
    restored.delete(gone)
    assert found(search(restored, encoded)) == world.expected(left, raw)
    restored.delete(left)
    assert len(restored) == 0


@FEWER
@given(seed=seeds())
def test_the_same_changes_give_the_same_answers_with_and_without_snapshots(index_class, seed):
    """A restored index follows at each step the one that was never restored."""
    world, _, raw = small_world(seed)
    rng = Random(seed)
    types = dict(world.attributes.schema())
    held = world.speaking(index_class.language)
    plain = index_class.build(world.table, held)
    kept = index_class.build(world.table, held)
    for step in range(6):
        layout = {name: array.copy() for name, array in kept.layout().items()}
        for array in layout.values():
            array.flags.writeable = bool(step % 2)  # a map of a file cannot be written
        kept = index_class.restore(world.table, layout)
        if rng.random() < 0.5 and len(held) > 4:
            chosen = np.array(rng.sample(held.tolist(), len(held) // 3), np.int32)
            plain.delete(chosen)
            kept.delete(chosen)
            world.release(chosen)
            held = np.setdiff1d(held, chosen)
        again = [world.exprs[slot] for slot in rng.sample(held.tolist(), min(4, len(held)))]
        fresh = world.store([*again, *mixed_expressions(rng, types, 4)])
        fresh = world.speaking(index_class.language, fresh)
        plain.insert(fresh)
        kept.insert(fresh)
        held = np.concatenate([held, fresh])
        encoded = world.events(raw)
        expected = world.expected(np.sort(held), raw)
        assert found(search(plain, encoded)) == expected
        assert found(search(kept, encoded)) == expected
        assert len(kept) == len(plain) == len(held)


def test_a_loaded_matcher_takes_an_equal_expression_and_lets_both_go(index_class, tmp_path):
    matcher = mw.Matcher(index_class.name)
    matcher.add_many([(1, "a = 1 AND b = 2"), (2, "(c = 1 OR d = 2) AND e = 3"), (3, "a = 1")])
    matcher.save(tmp_path / "kept")
    matcher = mw.Matcher.load(tmp_path / "kept")
    matcher.add_many([(4, "a = 1 AND b = 2"), (5, "(c = 1 OR d = 2) AND e = 3")])
    event = {"a": 1, "b": 2, "c": 1, "e": 3}
    assert matcher.match(event) == [1, 2, 3, 4, 5]
    assert matcher.remove_many([1, 4, 5]).count == 3
    assert matcher.match(event) == [2, 3]
    matcher.remove(2)
    assert matcher.match(event) == [3]
