"""Merge by compressed bitmaps, as in the paper: sets of subscriptions, one index after another."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from matchwood.context.choice import EVERY
from matchwood.context.cif_kernels import postfilter_first, probe_one
from matchwood.context.member_kernels import N_MEMBERS
from matchwood.encode.events import EventBatch
from matchwood.errors import IndexBuildError
from matchwood.index.core.protocol import Hits
from matchwood.index.core.scratch import Scratch
from matchwood.kernel.verify_kernels import CANDIDATES, COUNTERS, EVENTS, MATCHES, PREDICATES, Batch

if TYPE_CHECKING:
    from matchwood.context.cif import Cif


def match_bitmaps(cif: Cif, events: EventBatch, scratch: Scratch) -> Hits:
    """Match a batch event by event."""
    try:
        from pyroaring import BitMap
    except ImportError:
        raise IndexBuildError(
            "expected pyroaring for merge='bitmap': install it, or use merge='count'"
        ) from None
    members, choice = cif.members, cif.choice
    n, attrs = choice.width, choice.attrs.tolist()
    live = members.slot[: int(members.count[N_MEMBERS])] >= 0
    held = members.entry[: len(live) * n, 1].reshape(-1, n) > 0
    is_whole = held.sum(axis=1) == members.need[: len(live)]  # else any of its indexes will do
    listed = np.where(held & is_whole[:, None], members.listed[: len(live) * n].reshape(-1, n), -1)
    not_listed = [
        BitMap(np.flatnonzero(live & (listed != k).all(axis=1)).astype(np.uint32))
        for k in range(choice.n_lists)
    ]
    all_live = BitMap(np.flatnonzero(live).astype(np.uint32))
    search, stamp = cif.search_in(scratch), scratch.post(events, cif.n_attributes)
    x, counters = cif.filter(), np.zeros(len(COUNTERS), np.int64)
    out, offsets = np.empty(len(live), np.int32), np.zeros(events.n_events + 1, np.int64)
    answers = []
    for e in range(events.n_events):
        entries = slice(int(events.start[e]), int(events.start[e + 1]))
        keys = dict(zip(events.attr[entries].tolist(), events.lo[entries].tolist(), strict=True))
        is_probed = all(
            low == high
            for attr, low, high in zip(
                events.attr[entries].tolist(), events.lo[entries], events.hi[entries], strict=True
            )
            if attr in attrs
        )
        merged = all_live
        keys[EVERY] = 0
        for k, attr in enumerate(attrs if is_probed else ()):
            found = not_listed[k]
            if attr in keys:
                n_found = probe_one(cif.structure, k, keys[attr], search.found)
                found = found | BitMap((search.found[:n_found] // n).astype(np.uint32))
            merged = merged & found
        n_candidates = len(merged)
        search.candidates[:n_candidates] = merged.to_array()
        search.tested[0] = 0
        batch = Batch(events, e, stamp, scratch.board)
        used = postfilter_first(x, n_candidates, is_probed, search, cif.predicates, batch, out)
        answers.append(out[:used].copy())
        offsets[e + 1] = offsets[e] + used
        counters[EVENTS] += 1
        counters[CANDIDATES] += n_candidates
        counters[PREDICATES] += search.tested[0]
        counters[MATCHES] += used
    slots = np.concatenate(answers) if answers else np.empty(0, np.int32)
    return Hits(offsets, slots, counters)
