"""The two forms of a PS-Tree against each other: sorted cuts, and the paper's tree of elements.

    python benchmarks/space_forms.py [predicates ...]

Every predicate is a short interval.  "find" is the time to find the spaces of many values whose
keys (cuts) or elements (trie) are already made, "with" adds making them from the values: for
strings an ordered dictionary makes keys, as in the engine.  "insert" is the time for a predicate
that comes alone.  The spaces found must be the same.  See docs/decisions/0008.
"""

from __future__ import annotations

import sys
import time
from random import Random

import numpy as np

from matchwood.encode.dictionary import OrderedDictionary
from matchwood.index.stabbing.element_trie_kernels import find_values
from matchwood.index.stabbing.elements import elements
from matchwood.index.stabbing.ps_tree import CUTS, TRIE, PSTree

N_VALUES = 20_000


def drawn(kind: str, n: int, rng: Random) -> list:
    if kind == "string":
        return ["".join(rng.choices("abcdefghijklmnop", k=rng.randint(3, 9))) for _ in range(n)]
    return [rng.randint(-10_000_000, 10_000_000) for _ in range(n)]


def fastest(call, repetitions: int = 5) -> float:
    times = []
    for _ in range(repetitions):
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return min(times)


def filled(form: str, kind: str, intervals: list) -> tuple[PSTree, float]:
    tree = PSTree(form, kind)
    began = time.perf_counter()
    for i, interval in enumerate(intervals):
        tree.insert(i, [interval])
    return tree, (time.perf_counter() - began) / len(intervals)


def measure(kind: str, n: int) -> None:
    rng = Random(n)
    ends = sorted(set(drawn(kind, 2 * n, rng)))
    intervals = [(ends[i], ends[i + rng.randint(0, 2)]) for i in range(0, len(ends) - 2, 2)]
    rng.shuffle(intervals)
    values = drawn(kind, N_VALUES, rng)
    dictionary = OrderedDictionary()
    dictionary.add(end for interval in intervals for end in interval)
    key = dictionary.key if kind == "string" else int
    rows = [elements(value, kind) for value in values]
    sizes = np.array([len(row) for row in rows], np.int64)
    padded = np.zeros((len(rows), int(sizes.max())), np.uint8)
    for row, place in zip(rows, padded, strict=True):
        place[: len(row)] = row
    keys = np.array([key(value) for value in values], np.int64)
    in_keys = [(key(lo), key(hi)) for lo, hi in intervals]
    filled(CUTS, kind, in_keys[:5]), filled(TRIE, kind, intervals[:5])  # compile
    cuts, cuts_insert = filled(CUTS, kind, in_keys)
    trie, trie_insert = filled(TRIE, kind, intervals)
    form, found = trie._form, np.empty(N_VALUES, np.int64)
    in_trie = (form._trie, padded, sizes, form._path, form._last_leaf, found)
    for name, tree, insert, find, make in (
        (CUTS, cuts, cuts_insert, lambda: cuts.find(keys), lambda: list(map(key, values))),
        (TRIE, trie, trie_insert, lambda: find_values(*in_trie),
         lambda: [elements(value, kind) for value in values]),
    ):  # fmt: skip
        find_time, make_time = fastest(find), fastest(make)
        print(
            f"{kind:<8}{n:>7,}  {name:<6}{find_time / N_VALUES * 1e9:>8.0f} ns find"
            f"{(find_time + make_time) / N_VALUES * 1e9:>9.0f} ns with values"
            f"{insert * 1e6:>9.1f} µs insert{tree.nbytes / len(tree):>9.0f} bytes a space"
        )
    sizes_found = [
        [tree._lists.lists.size[leaf] for leaf in tree.find(asked)]
        for tree, asked in ((cuts, keys), (trie, values))
    ]
    assert sizes_found[0] == sizes_found[1], "the forms disagree"


if __name__ == "__main__":
    for n_predicates in [int(each) for each in sys.argv[1:]] or [100, 1_000, 10_000]:
        for type_ in ("int64", "string"):
            measure(type_, n_predicates)
