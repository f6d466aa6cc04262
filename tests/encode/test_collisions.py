"""No list of predicates makes the hash table slow: each table has a hash of its own."""

import numpy as np

import matchwood as mw
from inside import table_of

MASK = 2**64 - 1
ODD, MIX = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9
N = 3000


def mixed(h, value):
    h = ((h ^ (value & MASK)) * ODD) & MASK
    h ^= h >> 32
    h = (h * MIX) & MASK
    return h ^ (h >> 29)


def unmixed(h):
    """What `mixed` made h of: h ^ value."""
    h ^= (h >> 29) ^ (h >> 58)
    h = (h * pow(MIX, -1, 2**64)) & MASK
    h ^= h >> 32
    return (h * pow(ODD, -1, 2**64)) & MASK


def crafted(seed):
    """Numbers v for which every `x <= v` has the same place in a table of that seed."""
    before = mixed(mixed(seed ^ 1, 0), -(2**63))
    found = [unmixed(place << 40) ^ before for place in range(1, N + 1)]
    return [v - 2**64 if v >= 2**63 else v for v in found]


def longest_run(table):
    """Places taken one after the other: no search looks at more."""
    gaps = np.flatnonzero(np.concatenate([table, table]) < 0)
    return int(np.diff(gaps).max())


def test_the_way_back_is_right():
    for h in (0, 1, MASK, 0x0123456789ABCDEF):
        assert unmixed(mixed(h, 0)) == h


def test_predicates_crafted_against_a_hash_without_seed_are_spread():
    m = mw.Matcher(index="scan", schema={"x": "int"})
    m.add_many([(i, f"x <= {v}") for i, v in enumerate(crafted(0))])
    table = table_of(m).predicates.layout.table
    assert (table >= 0).sum() == N
    assert longest_run(table) < 200


def test_each_table_has_a_seed_of_its_own(tmp_path):
    first, second = mw.Matcher(), mw.Matcher()
    first.add(1, "x = 1")
    first.save(tmp_path / "s")
    loaded = mw.Matcher.load(tmp_path / "s")
    seeds = {int(table_of(m).predicates.layout.count[-1]) for m in (first, second, loaded)}
    assert len(seeds) == 3
