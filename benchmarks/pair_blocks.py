"""What blocks of pairs of attributes would cost to read, beside the coarse ones that they replace.

    python benchmarks/pair_blocks.py [MEMBERS]

The row of 10M of `benchmarks/blocks_counts.py` gives the shape: of an event's candidates 16,781 are
in 66 blocks; by pairs 3,401 are in 218, each found in a table by the pair.  Both are read by the
kernels of `blocks`, in memory of as many members, each with an entry of three words.  No gate is
open: members whose gates are open, and their entries, are the same in both.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np

from matchwood.index.blocks.index import _new_memory
from matchwood.index.blocks.match import AHEAD, FAR_AHEAD
from matchwood.index.blocks.verify import NO_BLOCK, ask_for_rows, test_block
from matchwood.index.blocks.words import HEAD, Blocks, header, small_gate
from matchwood.kernel.jit import kernel, prefetch

ENTRY_WORDS = 3
COARSE, PAIRS = (16_781, 66), (3_401, 218)


@kernel
def write(word, words, size):
    """Fill memory with row blocks of `size` members, whose gates no event opens."""
    items = HEAD + size
    for at in range(0, len(word), words):
        word[at], word[at + 1] = header(0, False, True, size), items
        for i in range(size):
            gate = small_gate(1, np.int64(200), np.int64(201))
            word[at + HEAD + i] = gate | (gate << 32)


@kernel
def read(blocks, table, picks, scratch, out):
    """Test the blocks of every event; returns how many members were deferred, which is none."""
    word, block, n_pending = blocks.word, scratch.block, np.int64(0)
    n = picks.shape[1]
    for e in range(len(picks)):
        for i in range(n):
            prefetch(table, picks[e, i])
        for i in range(n):
            block[i] = table[picks[e, i]]
        for i in range(min(np.int64(FAR_AHEAD), n)):
            prefetch(word, block[i])
            prefetch(word, block[i] + 8)
        for i in range(min(np.int64(AHEAD), n)):
            ask_for_rows(word, block[i], scratch.code)
        for i in range(n):
            if i + FAR_AHEAD < n:
                prefetch(word, block[i + FAR_AHEAD])
                prefetch(word, block[i + FAR_AHEAD] + 8)
            ahead = block[i + AHEAD] if i + AHEAD < n else np.int64(NO_BLOCK)
            found = test_block(blocks, block[i], ahead, scratch, out, np.int64(0), n_pending)
            n_pending = found[1]
    return n_pending


def filled(n_members: int, size: int) -> tuple[Blocks, np.ndarray]:
    """Blocks of so many members, and where each begins."""
    words = HEAD + size + (size + 1) // 2 + ENTRY_WORDS * size
    n = n_members // size
    word = np.zeros(n * words, np.int64)
    write(word, words, size)
    at = np.arange(n, dtype=np.int64) * words
    nothing = np.empty(0, np.int32)
    return Blocks(at, at[:0], word, word.view(np.int32), nothing, at[:0], nothing), at


def main() -> None:
    n_members, rng = int(sys.argv[1]) if len(sys.argv) > 1 else 4_000_000, np.random.default_rng(1)
    memory: Any = _new_memory(1_000)
    out, cases = np.empty(1_024, np.int32), {}
    for name, (candidates, n_blocks) in {"coarse": COARSE, "pairs": PAIRS}.items():
        blocks, at = filled(n_members, round(candidates / n_blocks))
        picks = rng.integers(0, len(at), (200, n_blocks))
        cases[name] = blocks, rng.permutation(at), picks
    best = dict.fromkeys(cases, np.inf)
    for _ in range(9):
        for name, (blocks, table, picks) in cases.items():
            began = time.thread_time_ns()
            assert read(blocks, table, picks, memory, out) == 0
            best[name] = min(best[name], time.thread_time_ns() - began)
    for name, (candidates, n_blocks) in {"coarse": COARSE, "pairs": PAIRS}.items():
        micros = best[name] / 200 / 1000
        print(f"{name:8}{candidates:8,} candidates {n_blocks:4} blocks {micros:7.1f} µs an event")


if __name__ == "__main__":
    main()
