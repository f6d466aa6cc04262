"""BEGen: the statistics that the paper's section 7.1 and Tables 2 and 3 ask for."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from matchwood.encode.events import encode_events
from matchwood.errors import MatchwoodError
from matchwood.index.scan.index import Scan
from matchwood.workload import (
    BEGen,
    event_dicts,
    find_workload,
    load_events,
    load_subscriptions,
)
from matchwood.workload.begen_bases import kept_share, number_of_bases
from matchwood.workload.begen_operators import accepted_share, range_widths
from searching import search

N = 20_000
OPERATORS = {
    "min": {"="},
    "low": {"=", "IN"},
    "med": {"=", "<", "<=", ">=", ">", "IN", "BETWEEN"},
    "high": {"=", "<>", "<", "<=", ">=", ">", "IN", "NOT IN", "BETWEEN"},
}
CLASSES = ["low", "med", "high"]


def strings(table: pa.Table, name: str) -> np.ndarray:
    return np.array(table.column(name).cast("string").to_pylist())


def sizes(table: pa.Table) -> np.ndarray:
    return np.bincount(table.column("id").to_numpy())


def accepts(operator: str, values: list[int], x: int) -> bool:
    v = values[0]
    return {
        "=": x == v,
        "<>": x != v,
        "<": x < v,
        "<=": x <= v,
        ">=": x >= v,
        ">": x > v,
        "IN": x in values,
        "NOT IN": x not in values,
        "BETWEEN": v <= x <= values[-1],
    }[operator]


def predicates(table: pa.Table) -> list[tuple[int, str, str, list[int]]]:
    columns = (table.column(name).to_pylist() for name in ("id", "attribute", "operator", "values"))
    return list(zip(*columns, strict=True))


def measured(workload: BEGen) -> float:
    """The share of all pairs of events and subscriptions that match."""
    loaded = load_subscriptions(workload)
    batch = load_events(workload, loaded.attributes)
    hits = search(Scan.build(loaded.table, loaded.slots), batch)
    return len(hits.slots) / workload.n_subscriptions / workload.n_events


# ------------------------------------------------------------------------- base expressions, rules


def test_events_are_the_base_expressions() -> None:
    workload = BEGen()
    table = workload.events(0, 100)
    bases = workload.bases(0, 100)
    assert table.column("value").to_pylist() == bases.value.tolist()
    assert set(np.bincount(table.column("event").to_numpy()).tolist()) == {15}
    for event in event_dicts(table, 0, 100):
        assert len(event) == 15
        assert all(0 <= value < 48 for value in event.values())


def test_after_the_last_base_the_first_event_comes_again() -> None:
    workload = BEGen(match_probability=0.1)
    events = event_dicts(workload.events(0, 25), 0, 25)
    assert workload.n_bases == 10
    assert events[:10] == events[10:20]
    assert events[:5] == events[20:]


@pytest.mark.parametrize("operators", CLASSES)
def test_every_derived_predicate_accepts_the_value_of_its_base(operators: str) -> None:
    workload = BEGen(operators=operators, cardinality=7, match_probability=0.02)
    bases = event_dicts(workload.events(0, 50), 0, 50)
    for row, name, operator, values in predicates(workload.subscriptions(0, 1_500)):
        base = bases[row % 50]
        assert accepts(operator, values, base[name])


@pytest.mark.parametrize("operators", OPERATORS)
def test_operators_are_those_of_the_class_each_as_often_as_the_others(operators: str) -> None:
    equality = 1.0 if operators == "min" else 0.3
    found = strings(BEGen(operators=operators, equality=equality).subscriptions(0, N), "operator")
    names, counts = np.unique(found, return_counts=True)
    assert set(names.tolist()) == OPERATORS[operators]
    shares = dict(zip(names.tolist(), (counts / len(found)).tolist(), strict=True))
    assert shares.pop("=") == pytest.approx(equality, abs=0.01)
    for share in shares.values():
        assert share == pytest.approx((1 - equality) / len(shares), abs=0.01)


@pytest.mark.slow
def test_lists_have_two_to_six_different_values_in_order() -> None:
    table = BEGen(operators="high").subscriptions(0, 4_000)
    for wanted in ("IN", "NOT IN"):
        lists = [values for _, _, op, values in predicates(table) if op == wanted]
        lengths = np.bincount([len(values) for values in lists])
        assert lengths[:2].tolist() == [0, 0]
        assert len(lengths) == 7
        assert np.abs(lengths[2:] / len(lists) - 0.2).max() < 0.04
        assert all(values == sorted(set(values)) for values in lists)


@pytest.mark.slow
def test_lists_fit_into_small_domains() -> None:
    table = BEGen(operators="high", cardinality=2, equality=0.0).subscriptions(0, 2_000)
    lists = {(op, tuple(values)) for _, _, op, values in predicates(table) if "IN" in op}
    assert lists == {("IN", (0, 1)), ("NOT IN", (0,)), ("NOT IN", (1,))}


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.06, 0.12, 0.5, 0.8])
def test_ranges_have_the_average_size(share: float) -> None:
    table = BEGen(range_size=share).subscriptions(0, 5_000)
    ends = np.array([values for _, _, op, values in predicates(table) if op == "BETWEEN"])
    widths = ends[:, 1] - ends[:, 0] + 1
    assert ends.min() == 0
    assert ends.max() == 47
    assert widths.mean() == pytest.approx(share * 48, rel=0.03)
    narrow, wide = range_widths(48, share)
    assert narrow - 1 < widths.min() <= widths.max() < wide + 1


@pytest.mark.slow
@pytest.mark.parametrize("operators", CLASSES)
def test_predicates_accept_the_computed_share_of_values(operators: str) -> None:
    table = BEGen(operators=operators, cardinality=20).subscriptions(0, 1_000)
    chances = [
        sum(accepts(op, values, x) for x in range(20)) / 20
        for _, _, op, values in predicates(table)
    ]
    assert np.mean(chances) == pytest.approx(accepted_share(operators, 0.3, 20, 0.12), rel=0.04)


# ----------------------------------------------------------------------------------- sizes, skew


@pytest.mark.parametrize(
    ("wanted", "size", "fewest"), [(7, 15, 1), (7, 15, 4), (5, 13, 1), (66, 81, 1), (3, 3, 1)]
)
def test_subscriptions_have_the_average_size(wanted: int, size: int, fewest: int) -> None:
    table = BEGen(predicates=wanted, event_size=size, min_predicates=fewest).subscriptions(0, 5_000)
    found = sizes(table)
    assert found.mean() == pytest.approx(wanted, rel=0.02)
    assert found.min() >= fewest
    assert found.max() <= size


def test_sizes_are_binomial() -> None:
    found = sizes(BEGen().subscriptions(0, N))
    assert found.var() == pytest.approx(15 * (7 / 15) * (8 / 15), rel=0.05)
    assert kept_share(15, 7, 0) == pytest.approx(7 / 15)


def test_uniform_attributes_are_even_and_zipf_attributes_are_not() -> None:
    counts = {}
    for distribution in ("uniform", "zipf"):
        workload = BEGen(distribution=distribution, n_attributes=50, match_probability=None)
        attr = workload.bases(0, N).attr
        counts[distribution] = np.bincount(attr, minlength=50) / N
    assert np.abs(counts["uniform"] - 15 / 50).max() < 0.02
    zipf = counts["zipf"]
    assert zipf[0] > 0.95
    assert zipf[-1] < 0.15
    assert (np.diff(zipf) < 0.02).all()


def test_the_first_attribute_of_a_base_follows_zipfs_law() -> None:
    workload = BEGen(distribution="zipf", n_attributes=50, match_probability=None)
    first = workload.bases(0, N).attr.reshape(N, 15)[:, 0]
    law = np.arange(1, 51) ** -2.0
    assert np.abs(np.bincount(first, minlength=50) / N - law / law.sum()).max() < 0.015


def test_under_zipfs_law_an_event_satisfies_some_predicate_of_most_subscriptions() -> None:
    # Section 7.3.2: "for every event about 80-90% of subscriptions have at least one".
    workload = BEGen(distribution="zipf")
    found = predicates(workload.subscriptions(0, 1_000))
    events = event_dicts(workload.events(50, 70), 50, 70)
    touched = {
        (e, row)
        for e, event in enumerate(events)
        for row, name, operator, values in found
        if name in event and accepts(operator, values, event[name])
    }
    assert 0.78 < len(touched) / 20 / 1_000 < 0.9


# --------------------------------------------------------------------------- matching probability


def test_one_percent_of_1000_needs_100_bases_as_in_the_paper() -> None:
    assert number_of_bases(0.01, 0.0) == 100
    workload = BEGen(n_subscriptions=1_000)
    assert workload.n_bases == 100
    bases = event_dicts(workload.events(0, 100), 0, 100)
    rows = np.bincount(np.arange(1_000) % 100)
    assert set(rows.tolist()) == {10}
    names = [set(base) for base in bases]
    assert all(
        name in names[row % 100] for row, name, *_ in predicates(workload.subscriptions(0, 1_000))
    )


@pytest.mark.slow
@pytest.mark.parametrize("distribution", ["uniform", "zipf"])
@pytest.mark.parametrize(
    ("probability", "changes"),
    [
        (0.01, {}),
        (0.01, {"operators": "high", "n_attributes": 50}),
        (0.01, {"predicates": 5, "event_size": 13, "min_predicates": 3}),
        (0.09, {"operators": "low"}),
        (0.001, {"min_predicates": 4}),
    ],
)
def test_the_match_probability_is_hit_within_a_tenth(
    distribution: str, probability: float, changes: dict[str, Any]
) -> None:
    workload = BEGen(
        n_subscriptions=N,
        n_events=100,
        distribution=distribution,
        match_probability=probability,
        **changes,
    )
    assert measured(workload) == pytest.approx(probability, rel=0.1)


def test_accidents_are_allowed_for() -> None:
    # With 100 bases a tenth of the matches would come on top.
    assert BEGen(distribution="zipf").n_bases == 111


def test_a_probability_below_that_of_accidents_is_explained() -> None:
    workload = BEGen(distribution="zipf", exponent=1.0, match_probability=0.0001)
    with pytest.raises(MatchwoodError, match=r"match probability above .* raise min_predicates"):
        workload.subscriptions(0, 10)
    assert workload.with_parameters(min_predicates=4).n_bases == pytest.approx(10_000, rel=0.1)


def test_without_a_probability_every_subscription_has_its_own_base() -> None:
    workload = BEGen(match_probability=None, operators="min", equality=1.0)
    events = event_dicts(workload.events(0, 300), 0, 300)
    for row, name, _, values in predicates(workload.subscriptions(0, 300)):
        assert events[row][name] == values[0]


# ------------------------------------------------------------------------------------ duplicates


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"distribution": "zipf"},
        {
            "operators": "high",
            "n_attributes": 8,
            "event_size": 6,
            "predicates": 2,
            "cardinality": 4,
            "match_probability": None,
        },
        {"equality": 1.0, "match_probability": 0.5, "event_size": 16},
    ],
)
def test_no_two_subscriptions_are_alike(changes: dict[str, Any]) -> None:
    loaded = load_subscriptions(BEGen(n_subscriptions=3_000, **changes))
    layout = loaded.table.layout
    ends = (layout.start + layout.size)[:3_000]
    found = {  # predicates are interned: equal ids, equal predicates
        tuple(np.sort(layout.code[first:last]).tolist())
        for first, last in zip(layout.start[:3_000], ends, strict=True)
    }
    assert len(found) == 3_000


def test_when_all_expressions_are_used_up_it_says_so() -> None:
    workload = BEGen(equality=1.0, match_probability=1.0, event_size=7, predicates=3.5)
    assert len(np.unique(workload.subscriptions(0, 100).column("id"))) == 100
    with pytest.raises(MatchwoodError, match=r"expected 128 different .* after 127: raise"):
        workload.subscriptions(0, 128)


def test_rows_do_not_depend_on_the_number_of_subscriptions_or_on_what_was_asked_before() -> None:
    late = BEGen(seed=5).subscriptions(70_000, 70_100)
    BEGen(seed=6).subscriptions(0, 1)
    BEGen(seed=7).subscriptions(0, 1)
    early = BEGen(seed=5, n_subscriptions=10)
    early.subscriptions(0, 10)
    assert early.subscriptions(69_990, 70_100).to_pylist()[-len(late) :] == late.to_pylist()


def test_rows_never_change() -> None:
    # Result files carry hashes of answers: other rows would make all of them strangers.
    found = [(row[1], row[2], *row[3]) for row in predicates(BEGen().subscriptions(9, 10))]
    assert found == [("a113", "<=", 35), ("a153", "=", 13), ("a104", ">", 4), ("a39", "=", 6)]


# -------------------------------------------------------------------------- events of predicates


def test_events_of_predicates_match_what_events_of_values_match_and_more() -> None:
    workload = BEGen(n_subscriptions=2_000, n_events=30, n_attributes=20, operators="high")
    loaded = load_subscriptions(workload)
    scan = Scan.build(loaded.table, loaded.slots)
    expressions = workload.event_expressions(0, 30)
    wide = encode_events(loaded.attributes, expressions)
    assert not wide.errors
    found = []
    for batch in (load_events(workload, loaded.attributes), wide.batch):
        hits = search(scan, batch)
        ends = pairwise(hits.offsets.tolist())
        found.append([set(hits.slots[first:last].tolist()) for first, last in ends])
    assert all(few <= many for few, many in zip(*found, strict=True))
    assert sum(map(len, found[0])) < sum(map(len, found[1]))
    assert workload.event_expressions(7, 9) == expressions[7:9]


def test_events_of_equalities_say_what_the_values_say() -> None:
    workload = BEGen(event_equality=1.0)
    event = event_dicts(workload.events(3, 4), 3, 4)[0]
    text = " AND ".join(f"{name} = {value}" for name, value in event.items())
    assert str(workload.event_expressions(3, 4)[0]) == text


# --------------------------------------------------------------------------------------- presets


def test_defaults_are_those_of_the_paper() -> None:
    workload = find_workload("begen:default")
    assert workload == BEGen()
    assert workload.parameters() | {"n_events": 0, "seed": 0} == {
        "n_subscriptions": 1_000_000,
        "n_events": 0,
        "seed": 0,
        "n_attributes": 400,
        "cardinality": 48,
        "predicates": 7,
        "min_predicates": 1,
        "event_size": 15,
        "equality": 0.3,
        "operators": "med",
        "range_size": 0.12,
        "match_probability": 0.01,
        "distribution": "uniform",
        "exponent": 2.0,
        "event_equality": 0.3,
    }
    assert find_workload("begen:zipf") == BEGen(distribution="zipf")


@pytest.mark.slow
@pytest.mark.parametrize("preset", BEGen.sweeps)
@pytest.mark.parametrize("distribution", ["uniform", "zipf"])
def test_every_point_of_table_3_can_be_generated(preset: str, distribution: str) -> None:
    for point in BEGen.sweeps[preset]:
        workload = find_workload(f"begen:{preset}", **{"distribution": distribution, **point})
        assert len(workload.subscriptions(0, 20)) >= 20
        assert len(workload.events(0, 5)) == 5 * workload.parameters()["event_size"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"event_size": 500}, "event_size up to n_attributes"),
        ({"predicates": 20}, "1 <= min_predicates <= predicates <= event_size"),
        ({"operators": "some"}, "operators among min, low, med, high"),
        ({"operators": "min"}, "equality = 1 with operators = 'min'"),
        ({"distribution": "normal"}, "distribution among uniform, zipf"),
        ({"match_probability": 0.0}, "a match probability from 0 to 1, or None"),
    ],
)
def test_a_wrong_parameter_is_explained(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(MatchwoodError, match=message):
        find_workload("begen", **changes)
