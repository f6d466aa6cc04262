"""Context: profiles that follow changing values, messages, and a stream of updates.

Idea.    A profile has one range per attribute, an epsilon around a value of its own context or, for
         some profiles, around constants.  Attributes have a global order of selectivity.  Between
         two messages values move by a small random distance.
Source.  AGILE, section 6.2 and Table 2: P = 500,000 profiles, Att = 8 attributes, CB = 90 % bound
         to a context, values uniform in [0, 10000] at Q = 3 digits, updates by up to dU, UP updates
         a profile for 10,000 messages, UpdAtt of them on indexed attributes.
Differs. The paper gives no epsilons; `selectivity` is chosen so that about one profile matches a
         message, two attributes are much more selective than the others, and testing one profile
         after the other costs about 20 times as much as using indexes.
Updates. Row i of the updates says which context and attribute moves how far; where it arrives
         depends on where it was, so `Walk` applies rows in order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from matchwood.encode.schema import Schema
from matchwood.workload.draws import Draws
from matchwood.workload.interface import Workload
from matchwood.workload.tables import coded, entry_table

TOP = 10_000.0
MESSAGES = 10_000
"""UP counts updates a profile for so many messages."""

_WIDE = (0.3, 0.5, 0.6, 0.7, 0.8, 0.9)
_500K = {"n_subscriptions": 500_000}


@dataclass(frozen=True, kw_only=True)
class Context(Workload):
    """Profiles around values that move, messages, and updates of those values.

    context_bound        share of profiles whose ranges follow their context (CB)
    selectivity          share of the values that a range covers, by attribute (Att of them)
    digits               significant digits of every value (Q)
    updates_per_profile  updates a profile for 10,000 messages (UP)
    delta                largest distance of an update (dU)
    indexed_share        share of updates on the first two attributes, which get indexes (UpdAtt);
                         None: as many as on any others
    burst                (messages, updates a profile) one after the other instead; repeats
    """

    name: ClassVar[str] = "context"
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "smoke": {"n_subscriptions": 5_000, "n_events": 60, "selectivity": (0.05, 0.1, *_WIDE)},
        "small": {"n_subscriptions": 100_000, "n_events": 100, "selectivity": (0.01, 0.02, *_WIDE)},
        "default": _500K,
        "throughput": {**_500K, "delta": 150},
        "update-distribution": {**_500K, "updates_per_profile": 1000.0},
        "locality": {**_500K, "updates_per_profile": 1000.0},
        "burst": {**_500K, "n_events": 5_000, "burst": ((1000, 1.0), (1000, 1000.0), (3000, 1.0))},
    }

    context_bound: float = 0.9
    selectivity: tuple[float, ...] = (0.005, 0.01, *_WIDE)
    digits: int = 3
    updates_per_profile: float = 1.0
    delta: float = 150.0
    indexed_share: float | None = None
    burst: tuple[tuple[int, float], ...] = ()

    def __post_init__(self) -> None:
        self._expect(0 <= self.context_bound <= 1, "a share of bound profiles from 0 to 1")
        self._expect(len(self.selectivity) >= 2, "at least two attributes")
        self._expect(all(0 < each <= 1 for each in self.selectivity), "selectivities from 0 to 1")
        self._expect(self.digits >= 1, "at least one digit")
        self._expect(self.updates_per_profile >= 0 and self.delta >= 0, "updates of 0 or more")
        share = self.indexed_share
        self._expect(share is None or 0 <= share <= 1, "a share of updates from 0 to 1")

    @property
    def names(self) -> list[str]:
        return [f"a{i}" for i in range(len(self.selectivity))]

    def schema(self) -> Schema:
        types = dict.fromkeys(self.names, "float")
        return Schema({**types, **{f"ctx.{name}": "float" for name in self.names}})

    def half_width(self, attribute: int) -> float:
        """The epsilon around a value of an attribute."""
        return float(self.quantised(np.array(self.selectivity[attribute] * TOP / 2)))

    def quantised(self, values: np.ndarray) -> np.ndarray:
        """Values at so many significant digits."""
        size = np.floor(np.log10(np.maximum(np.abs(values), 1e-9)))
        step = 10.0 ** (size - self.digits + 1)
        found: np.ndarray = np.round(np.round(values / step) * step, 9)
        return found

    def bound_text(self) -> str:
        """The expression of every profile that follows its context."""
        return " AND ".join(
            f"{name} BETWEEN ctx.{name} - {half!r} AND ctx.{name} + {half!r}"
            for i, name in enumerate(self.names)
            for half in [self.half_width(i)]
        )

    def is_bound(self, first: int, last: int) -> np.ndarray:
        """Which profiles follow their context."""
        draws = Draws(self.seed, "context/profiles", np.arange(first, last))
        bound: np.ndarray = draws.unit("bound")[:, 0] < self.context_bound
        return bound

    def values(self, first: int, last: int) -> np.ndarray:
        """float64[rows, attributes]: the middle of each range, a context's first values."""
        draws = Draws(self.seed, "context/profiles", np.arange(first, last))
        return self.quantised(draws.unit("value", len(self.names)) * TOP)

    def subscriptions(self, first: int, last: int) -> pa.Table:
        bound, values = self.is_bound(first, last), self.values(first, last)
        shared = self.bound_text()
        texts = [
            shared if is_bound else self._constant_text(values[i])
            for i, is_bound in enumerate(bound.tolist())
        ]
        ids = np.arange(first, last)
        contexts = pa.array(ids, mask=~bound)
        return pa.table({"id": ids, "expr": pa.array(texts, pa.string()), "context": contexts})

    def _constant_text(self, values: np.ndarray) -> str:
        return " AND ".join(
            f"{name} BETWEEN {value - self.half_width(i)!r} AND {value + self.half_width(i)!r}"
            for i, (name, value) in enumerate(zip(self.names, values.tolist(), strict=True))
        )

    def contexts(self, first: int, last: int) -> pa.Table:
        """Rows first .. last - 1 of the contexts at the start, as `set_context_many` takes them."""
        bound = self.is_bound(first, last)
        values = self.values(first, last)[bound]
        columns = {name: values[:, i].copy() for i, name in enumerate(self.names)}
        return pa.table({"context": np.arange(first, last)[bound], **columns})

    def events(self, first: int, last: int) -> pa.Table:
        rows = np.arange(first, last)
        draws = Draws(self.seed, "context/events", rows)
        values = self.quantised(draws.unit("value", len(self.names)) * TOP)
        n = len(self.names)
        return entry_table(
            np.repeat(rows, n),
            coded(np.tile(np.arange(n), len(rows)), self.names),
            pa.array(values.ravel()),
        )

    def updates_before(self, message: int) -> tuple[int, int]:
        """The rows of updates that come between the message before and this one."""
        return self._updates_until(message), self._updates_until(message + 1)

    def _updates_until(self, message: int) -> int:
        per_message = self.n_subscriptions / MESSAGES
        if not self.burst:
            return int(message * per_message * self.updates_per_profile)
        length = sum(n for n, _ in self.burst)
        rounds, rest = divmod(message, length)
        updates = rounds * sum(n * rate for n, rate in self.burst)
        for n, rate in self.burst:
            updates += min(rest, n) * rate
            rest = max(0, rest - n)
        return int(updates * per_message)

    def updates(self, first: int, last: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Rows first .. last - 1: profile, attribute, and how far its value moves.

        An update of a profile without a context is none; about one in ten.
        """
        draws = Draws(self.seed, "context/updates", np.arange(first, last))
        n = len(self.names)
        profile = draws.below("profile", self.n_subscriptions)[:, 0]
        attribute = draws.below("attribute", n)[:, 0]
        if self.indexed_share is not None:
            hits = draws.unit("share")[:, 0] < self.indexed_share
            attribute = np.where(hits, attribute % 2, 2 + attribute % (n - 2))
        moves = (2 * draws.unit("move")[:, 0] - 1) * self.delta
        return profile, attribute, moves


class Walk:
    """Where the values of a workload's contexts are, as its updates come in."""

    def __init__(self, workload: Context) -> None:
        self._workload = workload
        self._bound = workload.is_bound(0, workload.n_subscriptions)
        self.values = workload.values(0, workload.n_subscriptions)

    def steps(self, first: int, last: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Updates first .. last - 1, taken in order: profile, attribute and new value."""
        from matchwood.workload.context_kernels import walk

        profile, attribute, moves = self._workload.updates(first, last)
        keep = self._bound[profile]
        profile, attribute, moves = profile[keep], attribute[keep], moves[keep]
        arrived, unit = np.empty(len(profile)), 10.0 ** (1 - self._workload.digits)
        walk(self.values, profile, attribute, moves, TOP, unit, arrived)
        return profile, attribute, arrived
