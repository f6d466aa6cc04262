"""Laws that every index keeps with every setting."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pytest

import matchwood as mw
from encode.world import found, small_world
from index.variants import SETTINGS
from matchwood.index.core.registry import REGISTRY, find_index
from searching import search

pytestmark = pytest.mark.slow

VARIANTS = [(name, config) for name in REGISTRY for config in ({}, *SETTINGS.get(name, ()))]
each_variant = pytest.mark.parametrize(("name", "config"), VARIANTS, ids=str)


@pytest.mark.parametrize("name", REGISTRY)
def test_every_setting_has_a_variant(name):
    known = {field.name for field in fields(find_index(name).Config)}
    known -= {"over"} if name == "k_index" else set()  # values of small domains: test_k_index.py
    assert {setting for config in SETTINGS.get(name, ()) for setting in config} == known


@each_variant
def test_an_event_without_known_attributes_satisfies_absences_alone(name, config):
    matcher = mw.Matcher(name, **named(config))
    unknown: list[dict[str, Any]] = [{}, {"unknown": 1}, {"a": None}, {"x.y": {"z": 2}}]
    assert [matcher.match(event) for event in unknown] == [[]] * 4  # while nothing is held
    assert list(matcher.match_many(unknown)) == [[]] * 4
    matcher.add_many([(1, "a = 1 AND b < 5"), (2, "a > 0 OR c = 1"), (3, "b <> 3 AND a < 9")])
    assert [matcher.match(event) for event in unknown] == [[]] * 4
    assert list(matcher.match_many(unknown)) == [[]] * 4
    matcher.add(4, "a IS NULL")
    assert [matcher.match(event) for event in unknown] == [[4]] * 4
    mixed = [{"a": 1, "b": 2}, *unknown, {"b": 2, "c": 1}]
    assert list(matcher.match_many(mixed)) == [[1, 2, 3], [4], [4], [4], [4], [2, 4]]
    assert list(matcher.match_many(unknown)) == [[4]] * 4
    assert list(matcher.match_many([])) == []
    matcher.remove_many([1, 2, 3, 4])
    assert [matcher.match(event) for event in mixed] == [[]] * 6


@each_variant
def test_building_changing_and_keeping_agree_with_the_naive_evaluator(name, config):
    index_class = find_index(name)
    world, encoded, raw = small_world(seed=len(str(config)), n_expressions=60)
    held = world.speaking(index_class.language)
    index = index_class.build(world.table, held[::2], **config)
    assert found(search(index, encoded)) == world.expected(held[::2], raw)
    for slot in held[1::2]:
        index.insert(np.array([slot], np.int32))
    assert found(search(index, encoded)) == world.expected(held, raw)
    index.delete(held[::3])
    left = np.setdiff1d(held, held[::3])
    assert found(search(index, encoded)) == world.expected(left, raw)
    kept = {label: array.copy() for label, array in index.layout().items()}
    index = index_class.restore(world.table, kept, **config)
    index.insert(held[::3])
    assert found(search(index, encoded)) == world.expected(held, raw)
    index.delete(held)
    empty = index_class.restore(world.table, index.layout(), **config)
    assert found(search(empty, encoded)) == [[]] * len(raw)


def named(config: dict[str, Any]) -> dict[str, Any]:
    """Attributes by name, as a matcher takes them."""
    return {**config, "attributes": ["a", "b"]} if "attributes" in config else config
