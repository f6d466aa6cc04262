"""Answers: an index is timed only after it has agreed with `scan`, pair by pair."""

from __future__ import annotations

import hashlib

import numpy as np

from matchwood.encode.events import EventBatch
from matchwood.errors import MatchwoodError
from matchwood.index.core.protocol import Hits

_SHOWN = 5


class WrongAnswers(MatchwoodError):
    """An index disagrees with `scan`: the run ends, and no time of it is kept."""


def first_events(events: EventBatch, n: int | None) -> EventBatch:
    """The first n events of a batch; views, of the same types."""
    if n is None or n >= events.n_events:
        return events
    end = int(events.start[n])
    more = events.more[:end] if len(events.more) else events.more
    return events._replace(
        start=events.start[: n + 1],
        attr=events.attr[:end],
        lo=events.lo[:end],
        hi=events.hi[:end],
        more=more,
    )


def pairs(hits: Hits, n_events: int) -> np.ndarray:
    """(event, slot) of the first events as single numbers, ascending."""
    offsets = hits.offsets[: n_events + 1]
    event = np.repeat(np.arange(n_events, dtype=np.int64), np.diff(offsets))
    return np.sort(event << np.int64(32) | hits.slots[: offsets[-1]].astype(np.int64))


def fingerprint(answers: np.ndarray) -> str:
    """A hash of sorted pairs, equal on every machine."""
    return hashlib.sha256(answers.astype("<i8").tobytes()).hexdigest()


def check(label: str, case: str, found: np.ndarray, expected: np.ndarray) -> None:
    """Raise WrongAnswers unless both hold the same pairs."""
    if np.array_equal(found, expected):
        return
    missing, extra = np.setdiff1d(expected, found), np.setdiff1d(found, expected)
    twice = len(found) - len(np.unique(found))
    wrong = np.unique(np.concatenate([missing, extra]) >> 32)
    raise WrongAnswers(
        f"index {label!r}{f' in case {case!r}' if case else ''}: expected the answers of scan "
        f"({len(expected):,} matches), found {len(missing):,} missing, {len(extra):,} extra and "
        f"{twice:,} given twice, in {len(wrong):,} events; nothing was timed. "
        f"Missing: {_shown(missing)}. Extra: {_shown(extra)}"
    )


def _shown(answers: np.ndarray) -> str:
    first = [f"event {each >> 32} slot {each & 0xFFFFFFFF}" for each in answers[:_SHOWN].tolist()]
    return ", ".join(first) + (" ..." if len(answers) > _SHOWN else "") if first else "none"
