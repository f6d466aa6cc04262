"""Metrics: how often a matcher was asked and changed, and how long it took.

A histogram has a bucket per power of two of microseconds, so noting a call is a bit length and one
addition.  Counts of calls that have the matcher for themselves are exact, others nearly so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from time import perf_counter_ns
from typing import Any, TypeVar

BUCKETS = 28
"""Up to 1, 2, 4, ... microseconds; the last takes everything from about a minute on."""

Call = TypeVar("Call", bound=Callable[..., Any])


class Histogram:
    """Durations of one kind of call."""

    __slots__ = ("counts", "nanoseconds")

    def __init__(self) -> None:
        self.counts = [0] * BUCKETS
        self.nanoseconds = 0

    def note(self, nanoseconds: int) -> None:
        self.nanoseconds += nanoseconds
        try:
            self.counts[(nanoseconds // 1000).bit_length()] += 1
        except IndexError:
            self.counts[-1] += 1

    def quantile(self, share: float) -> float:
        """Seconds that a share of calls did not exceed, rounded up to a bucket's end."""
        wanted, seen = share * sum(self.counts), 0
        for bucket, count in enumerate(self.counts):
            seen += count
            if seen >= wanted:
                return _end(bucket)
        return 0.0

    def stats(self) -> dict[str, Any]:
        return {
            "count": sum(self.counts),
            "seconds": self.nanoseconds / 1e9,
            "p50": self.quantile(0.5),
            "p99": self.quantile(0.99),
            "histogram": {_end(at): count for at, count in enumerate(self.counts) if count},
        }


def _end(bucket: int) -> float:
    """Seconds that durations in a bucket do not exceed, but for the last bucket."""
    return float(2**bucket / 1e6)


Meter = dict[str, Histogram]
"""By the name of the call."""


def note(meter: Meter, name: str, started: int) -> None:
    """Note the duration of a call that began at `started`, of `perf_counter_ns`."""
    took = perf_counter_ns() - started
    try:
        histogram = meter[name]
    except KeyError:
        histogram = meter[name] = Histogram()
    histogram.note(took)


def measured(call: Call) -> Call:
    """Note the duration of a method of an object that has a `_meter`, also if it raises."""
    name = call.__name__.lstrip("_")

    @wraps(call)
    def noted(self: Any, *args: Any, **options: Any) -> Any:
        started = perf_counter_ns()
        try:
            return call(self, *args, **options)
        finally:
            note(self._meter, name, started)

    return noted  # type: ignore[return-value]


def prometheus(stats: Mapping[str, Any], meter: Meter) -> str:
    """Stats and durations in the text format of Prometheus."""
    lines: list[str] = []

    def family(name: str, kind: str, help_: str, samples: list[tuple[str, Any]]) -> None:
        lines.append(f"# HELP matchwood_{name} {help_}")
        lines.append(f"# TYPE matchwood_{name} {kind}")
        lines.extend(f"matchwood_{name}{label} {value}" for label, value in samples)

    for name, help_ in _GAUGES.items():
        family(name, "gauge", help_, [("", stats[name])])
    sizes = [(f'{{part="{part}"}}', size) for part, size in stats["bytes"].items()]
    family("bytes", "gauge", "Memory by part.", sizes)
    work = [(f'{{counter="{name}"}}', value) for name, value in stats["work"].items()]
    family("work_total", "counter", "Work of searches.", work)
    samples: list[tuple[str, Any]] = []
    for call, histogram in sorted(meter.items()):
        seen = 0
        for bucket, count in enumerate(histogram.counts[:-1]):
            seen += count
            samples.append((f'_bucket{{call="{call}",le="{_end(bucket)}"}}', seen))
        total = sum(histogram.counts)
        samples.append((f'_bucket{{call="{call}",le="+Inf"}}', total))
        samples.append((f'_sum{{call="{call}"}}', histogram.nanoseconds / 1e9))
        samples.append((f'_count{{call="{call}"}}', total))
    family("call_seconds", "histogram", "Durations of calls.", samples)
    return "\n".join(lines) + "\n"


_GAUGES = {
    "subscriptions": "Subscriptions held.",
    "refused": "Subscriptions of a folder's log that are refused, and match nothing.",
    "conjunctions": "Subscriptions that are conjunctions.",
    "trees": "Subscriptions that are other expressions.",
    "attributes": "Attributes known.",
    "predicates": "Distinct predicates.",
    "contexts": "Contexts known.",
}
