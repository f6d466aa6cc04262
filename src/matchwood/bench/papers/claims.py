"""Claims: what a paper says about a figure, as data, and whether our numbers say the same.

A claim names a rule, the index it is about (`who`), those it is compared with (`than`; all others
of the figure that are not ours and have another index, unless given), where (`at`: all, first,
last, any, burst, or values of the axis) and how much (`factor`).  Smaller numbers are better, but
for throughputs.

    faster      who has the best number, by the factor: "80 % better" is a factor of 5
    order       who, best first
    similar     the numbers of who lie within the factor of each other
    flat        the largest number of who is at most factor times its smallest
    rises       the last number of who is at least factor times its first
    falls       the reverse
    returns     the last number of who is at most factor times its first
    linear      the numbers of who grow like the axis: exponent 0.7 to 1.3
    grows_less  the growth of who is below that of than
    cross       who is better up to the first value of at, than from the second on
    best_at     the best number of who is at this value of the axis
    at_most     the largest number of who is at most the factor itself
    refuses     who cannot be measured from this value of the axis on

Holds: as claimed, with at least half of the gain: a factor of 5 is a gain of 4 and holds from 3 on
(from 100 on a fifth: other machine, other compiler).  Partly: the direction is right, the size is
not.  One noise level for all: 5 %; growth that differs by less is no difference.

Long, since it is a list: one entry for each sentence of a paper that can be checked.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import combinations
from typing import Any, NamedTuple

from matchwood.errors import MatchwoodError

HOLDS, PARTLY, FAILS = 1.0, 0.5, 0.0
NOISE = 1.05
REPRODUCED, PART, NOT, UNMEASURED = "reproduced", "partly", "not", "not measured"
HIGHER_IS_BETTER = {"throughput", "mean_throughput"}


@dataclass(frozen=True, kw_only=True)
class Claim:
    """One sentence of a paper."""

    rule: str
    says: str
    who: tuple[str, ...]
    than: tuple[str, ...] = ()
    at: Any = "all"
    factor: float = 1.0
    metric: str = ""
    ours: bool = False  # a goal of this library: judged and shown, and no part of the verdict

    @classmethod
    def read(cls, where: str, data: Mapping[str, Any]) -> Claim:
        known = {each.name for each in fields(cls)}
        if data.get("rule") not in RULES or data.keys() - known or not data.get("says"):
            raise MatchwoodError(
                f"{where}: expected a claim with says, a rule among {', '.join(RULES)} and keys "
                f"among {', '.join(sorted(known))}, found {dict(data)}"
            )
        names = {
            each: (data[each],) if isinstance(data[each], str) else tuple(data[each])
            for each in ("who", "than")
            if each in data
        }
        return cls(**{**data, **names})


class Curves(NamedTuple):
    """The numbers of a figure: one list a series, in the order of `xs`; None is no number."""

    xs: list[Any]
    values: Mapping[str, Sequence[float | None]]
    refused: Mapping[str, Sequence[bool]]
    others: Sequence[str]
    higher: bool = False
    families: Mapping[str, str] = {}  # the index of each series
    burst: tuple[float, float] = (0.0, 0.0)  # where the axis has a burst of updates

    def rivals(self, claim: Claim) -> Sequence[str]:
        """The indexes that a claim compares with."""
        ours = {self.families.get(who, who) for who in claim.who}
        return claim.than or [
            each for each in self.others if self.families.get(each, each) not in ours
        ]

    def cost(self, who: str, i: int) -> float | None:
        """The number of a series at a point, such that smaller is better."""
        value = self.values.get(who, [None] * len(self.xs))[i]
        if value is None or value < 0:
            return None
        value = max(value, 1e-12)
        return 1 / value if self.higher else value


class Finding(NamedTuple):
    """What became of a claim; score None: nothing was measured."""

    score: float | None
    text: str


def judge(claim: Claim, curves: Curves) -> Finding:
    """Whether a claim holds."""
    found: Finding = RULES[claim.rule](claim, curves)
    return found


def verdict(findings: Sequence[Finding]) -> str:
    """One word for a panel: every claim holds, some do, none does."""
    scores = [each.score for each in findings if each.score is not None]
    if not scores:
        return UNMEASURED
    if min(scores) == HOLDS:
        return REPRODUCED
    return PART if sum(scores) / len(scores) >= 0.3 else NOT


def _enough(measured: float, claimed: float) -> bool:
    return measured >= 1 + (claimed - 1) * (0.2 if claimed >= 100 else 0.5)


def indices(claim: Claim, curves: Curves) -> list[int]:
    """Positions on the axis that a claim is about."""
    n = len(curves.xs)
    if claim.at == "first":
        return [0]
    if claim.at == "last":
        return [n - 1]
    if claim.at in ("all", "any"):
        return list(range(n))
    if claim.at == "burst":
        low, high = curves.burst
        return [
            i for i, x in enumerate(curves.xs) if isinstance(x, int | float) and low < x <= high
        ]
    wanted = claim.at if isinstance(claim.at, list) else [claim.at]
    return [i for i, x in enumerate(curves.xs) if x in wanted]


def _points(claim: Claim, curves: Curves, who: str) -> Iterator[tuple[int, float]]:
    for i in indices(claim, curves):
        cost = curves.cost(who, i)
        if cost is not None:
            yield i, cost


def _mean(ratios: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def _times(ratio: float) -> str:
    return f"{ratio:.3g} x"


_NOTHING = Finding(None, "not measured")


def _faster(claim: Claim, curves: Curves) -> Finding:
    ratios, beaten_by = [], set()
    rivals = curves.rivals(claim)
    for who in claim.who:
        for i, ours in _points(claim, curves, who):
            costs = [(cost, each) for each in rivals if (cost := curves.cost(each, i)) is not None]
            if costs:
                best, name = min(costs)
                ratios.append(best / ours)
                if best * NOISE < ours:
                    beaten_by.add(name)
    if not ratios:
        return _NOTHING
    measured = max(ratios) if claim.at == "any" else _mean(ratios)
    wins = sum(ratio * NOISE >= 1 for ratio in ratios)
    text = f"{_times(measured)} the next best (claimed {_times(claim.factor)})"
    if claim.than:
        text = (
            f"{_times(measured)} against {', '.join(claim.than)} (claimed {_times(claim.factor)})"
        )
    if claim.at != "any" and wins < len(ratios):
        text += f", ahead at {wins} of {len(ratios)} points; behind {', '.join(sorted(beaten_by))}"
    ahead = claim.at == "any" or wins == len(ratios)
    if ahead and _enough(measured * NOISE, claim.factor):
        return Finding(HOLDS, text)
    return Finding(PARTLY if measured > NOISE or 2 * wins >= len(ratios) else FAILS, text)


def _order(claim: Claim, curves: Curves) -> Finding:
    right = total = 0
    shown = ""
    for i in indices(claim, curves):
        costs = [(each, curves.cost(each, i)) for each in claim.who]
        known = [(each, cost) for each, cost in costs if cost is not None]
        for (_, a), (_, b) in combinations(known, 2):
            total += 1
            right += a <= b * NOISE
        if len(known) > 1:
            shown = " < ".join(each for each, _ in sorted(known, key=lambda pair: pair[1]))
    if not total:
        return _NOTHING
    share = right / total
    text = f"{right} of {total} pairs in this order; at the last point {shown}"
    return Finding(HOLDS if share >= 0.9 else PARTLY if share >= 0.6 else FAILS, text)


def _similar(claim: Claim, curves: Curves) -> Finding:
    spreads = []
    for i in indices(claim, curves):
        costs = [cost for each in claim.who if (cost := curves.cost(each, i)) is not None]
        if len(costs) > 1:
            spreads.append(max(costs) / min(costs))
    if not spreads:
        return _NOTHING
    measured = _mean(spreads)
    return _at_most(measured, claim.factor, f"apart by {_times(measured)}")


def _at_most(measured: float, limit: float, text: str) -> Finding:
    text += f" (claimed at most {limit:.3g})"
    if measured <= limit * NOISE:
        return Finding(HOLDS, text)
    return Finding(PARTLY if measured <= 2 * limit else FAILS, text)


def _flat(claim: Claim, curves: Curves) -> Finding:
    worst = 0.0
    for who in claim.who:
        costs = [cost for _, cost in _points(claim, curves, who)]
        if len(costs) > 1:
            worst = max(worst, max(costs) / min(costs))
    if not worst:
        return _NOTHING
    return _at_most(worst, max(claim.factor, 1.5), f"largest / smallest {_times(worst)}")


def _growths(claim: Claim, curves: Curves, who: Sequence[str]) -> list[float]:
    """Last number / first number of each series, as drawn."""
    found = []
    for each in who:
        values = [
            value
            for i in indices(claim, curves)
            if (value := curves.values.get(each, [None] * len(curves.xs))[i])
        ]
        if len(values) > 1:
            found.append(values[-1] / values[0])
    return found


def _changes(claim: Claim, curves: Curves, upwards: bool) -> Finding:
    growths = _growths(claim, curves, claim.who)
    if not growths:
        return _NOTHING
    ratios = growths if upwards else [1 / each for each in growths]
    claimed = max(claim.factor, NOISE)
    text = f"last / first {', '.join(_times(each) for each in growths)}"
    if claim.factor > 1:
        text += f" (claimed {_times(claim.factor if upwards else 1 / claim.factor)})"
    good = sum(each >= NOISE and _enough(each, claimed) for each in ratios)
    if good == len(ratios):
        return Finding(HOLDS, text)
    some = any(each >= NOISE for each in ratios)
    return Finding(PARTLY if some else FAILS, text)


def _rises(claim: Claim, curves: Curves) -> Finding:
    return _changes(claim, curves, upwards=True)


def _falls(claim: Claim, curves: Curves) -> Finding:
    return _changes(claim, curves, upwards=False)


def _returns(claim: Claim, curves: Curves) -> Finding:
    ratios = []
    for who in claim.who:
        costs = [cost for _, cost in _points(claim, curves, who)]
        if len(costs) > 1:
            ratios.append(costs[-1] / costs[0])
    if not ratios:
        return _NOTHING
    return _at_most(max(ratios), max(claim.factor, 1.25), f"at the end {_times(max(ratios))}")


def _linear(claim: Claim, curves: Curves) -> Finding:
    slopes = []
    for who in claim.who:
        points = [(curves.xs[i], cost) for i, cost in _points(claim, curves, who)]
        if len(points) > 1 and points[-1][0] > points[0][0] > 0:
            (x0, y0), (x1, y1) = points[0], points[-1]
            slopes.append(math.log(y1 / y0) / math.log(x1 / x0))
    if not slopes:
        return _NOTHING
    text = f"exponents {', '.join(f'{each:.2f}' for each in slopes)} (1 is linear)"
    if all(0.7 <= each <= 1.3 for each in slopes):
        return Finding(HOLDS, text)
    inside = sum(0.4 <= each <= 1.6 for each in slopes)
    return Finding(PARTLY if 2 * inside >= len(slopes) else FAILS, text)


def _grows_less(claim: Claim, curves: Curves) -> Finding:
    rivals = curves.rivals(claim)
    ours, others = _growths(claim, curves, claim.who), _growths(claim, curves, rivals)
    if not ours or not others:
        return _NOTHING
    text = f"grows {_times(max(ours))}, the others {', '.join(_times(each) for each in others)}"
    if all(max(ours) * NOISE <= each for each in others):
        return Finding(HOLDS, text)
    level = sum(max(ours) <= each * NOISE for each in others)
    return Finding(PARTLY if 2 * level >= len(others) else FAILS, text)


def _cross(claim: Claim, curves: Curves) -> Finding:
    (first,), (second,) = claim.who, claim.than
    before, after = claim.at
    signs = []
    for i, x in enumerate(curves.xs):
        a, b = curves.cost(first, i), curves.cost(second, i)
        if a is not None and b is not None:
            signs.append((x, a <= b))
    if len(signs) < 2:
        return _NOTHING
    early = [ahead for x, ahead in signs if x <= before]
    late = [ahead for x, ahead in signs if x >= after]
    ahead = [x for x, each in signs if each]
    text = f"{first} is ahead at {ahead or 'no point'} of {[x for x, _ in signs]}"
    if all(early) and not any(late):
        return Finding(HOLDS, text)
    if signs[0][1] and not signs[-1][1]:
        return Finding(PARTLY, text)  # they cross, at another value
    growth = [curves.cost(second, i) for i in (0, len(curves.xs) - 1)]
    ours = [curves.cost(first, i) for i in (0, len(curves.xs) - 1)]
    ratios = [a / b for a, b in zip(ours, growth, strict=True) if a is not None and b is not None]
    if len(ratios) == 2 and ratios[1] > ratios[0] * NOISE:
        return Finding(PARTLY, f"{text}; they come nearer: {ratios[0]:.2g} to {ratios[1]:.2g}")
    return Finding(FAILS, text)


def _best_at(claim: Claim, curves: Curves) -> Finding:
    wanted = claim.at if isinstance(claim.at, list) else [claim.at]
    scores, shown = [], []
    for who in claim.who:
        costs = [(cost, i) for i in range(len(curves.xs)) if (cost := curves.cost(who, i))]
        if len(costs) > 1:
            best = min(costs)[1]
            near = [i for i, x in enumerate(curves.xs) if x in wanted]
            away = min((abs(best - i) for i in near), default=9)
            level = [c for c, i in costs if i in near and c <= min(costs)[0] * 1.1]
            scores.append(HOLDS if away == 0 or level else PARTLY if away == 1 else FAILS)
            shown.append(f"best at {curves.xs[best]}")
    if not scores:
        return _NOTHING
    score = HOLDS if min(scores) == HOLDS else PARTLY if max(scores) > FAILS else FAILS
    return Finding(score, f"{', '.join(shown)} (claimed {wanted})")


def _limit(claim: Claim, curves: Curves) -> Finding:
    found = [
        (value, curves.xs[i])
        for who in claim.who
        for i in indices(claim, curves)
        if (value := curves.values.get(who, [None] * len(curves.xs))[i]) is not None
    ]
    if not found:
        return _NOTHING
    largest, x = max(found, key=lambda each: each[0])
    return _at_most(largest, claim.factor, f"at most {largest:.3g} at {x}".removesuffix(" at "))


def _refuses(claim: Claim, curves: Curves) -> Finding:
    early = late = n_late = 0
    for who in claim.who:
        for x, refused in zip(curves.xs, curves.refused.get(who, ()), strict=False):
            late += refused and x >= claim.at
            early += refused and x < claim.at
            n_late += x >= claim.at
    if not n_late:
        return _NOTHING
    text = f"refused at {late} of {n_late} points from {claim.at} on, at {early} before"
    if late == n_late and not early:
        return Finding(HOLDS, text)
    return Finding(PARTLY if late or early else FAILS, text)


RULES = {
    "faster": _faster,
    "order": _order,
    "similar": _similar,
    "flat": _flat,
    "rises": _rises,
    "falls": _falls,
    "returns": _returns,
    "linear": _linear,
    "grows_less": _grows_less,
    "cross": _cross,
    "best_at": _best_at,
    "at_most": _limit,
    "refuses": _refuses,
}
