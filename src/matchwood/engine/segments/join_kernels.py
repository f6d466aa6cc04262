"""Join: the hits of several parts of a view, each in the order of addition, as one list."""

from __future__ import annotations

from matchwood.kernel.jit import kernel


@kernel
def join(offsets, start, order, at, out_offsets, take):
    """Write `take`, positions among all hits, by event and order; returns how many there are.

    offsets      int64[P, n + 1]  those of event e in part p are [p, e] to [p, e + 1]
    start        int64[P + 1]     where the hits of a part begin among all
    order        int64[]          the number of each hit in the order of addition, part by part
    at           int64[P]         scratch: the next hit of each part
    out_offsets  int64[n + 1]     written: those of event e in `take`
    """
    n_parts = offsets.shape[0]
    written = 0
    for e in range(offsets.shape[1] - 1):
        n = 0
        for p in range(n_parts):
            at[p] = start[p] + offsets[p, e]
            n += offsets[p, e + 1] - offsets[p, e]
        for _ in range(n):
            best = -1
            for p in range(n_parts):
                is_left = at[p] < start[p] + offsets[p, e + 1]
                if is_left and (best < 0 or order[at[p]] < order[at[best]]):
                    best = p
            take[written] = at[best]
            at[best] += 1
            written += 1
        out_offsets[e + 1] = written
    return written
