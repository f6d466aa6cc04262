"""The suite of messages and updates: answers are compared, work is counted."""

from __future__ import annotations

import pytest

from matchwood.bench import find_suite, run_suite
from matchwood.bench.answers import WrongAnswers
from matchwood.bench.context_arena import Filter, Stream
from matchwood.bench.suite import read_suite
from matchwood.context.filters import Agile
from matchwood.errors import MatchwoodError
from matchwood.index.core.protocol import Hits
from matchwood.workload import find_workload

pytestmark = pytest.mark.slow  # it compiles every filter

SUITE = """
description = "d"
runner = "context"
[[indexes]]
index = "no_index"
[[indexes]]
index = "eager"
[[indexes]]
index = "agile"
[presets.smoke]
workload = "context:smoke"
cases = [
  {label = "few", n_subscriptions = 1500, updates_per_profile = 1.0, n_events = 24},
  {label = "many", n_subscriptions = 1500, updates_per_profile = 2000.0, n_events = 24},
]
"""


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    return run_suite(read_suite("mine", SUITE), "smoke", out=tmp_path_factory.mktemp("out"))


def test_every_filter_gives_the_answers_of_the_first(report):
    for case in report.data["cases"]:
        assert [row["answers"] for row in case["indexes"]] == ["reference", "agree", "agree"]
        assert case["answers"]["matches"] > 0
        assert case["answers"]["events"] == 24


def test_agile_bothers_its_indexes_less_than_eager_does(report):
    few, many = report.data["cases"]
    work = {row["label"]: row["counters"] for row in many["indexes"]}
    assert work["eager"]["index_updates"] > 1.5 * work["agile"]["index_updates"] > 0
    assert work["no_index"]["candidates"] == 20 * 1500
    assert work["eager"]["candidates"] < work["agile"]["candidates"] < 20 * 1500 / 2
    assert work["agile"]["updates"] > 4_000
    assert few["indexes"][2]["counters"]["candidates"] < work["agile"]["candidates"]
    assert "to indexes" in report.table()


def test_a_filter_that_loses_a_match_stops_the_run(monkeypatch, tmp_path):
    def lossy(self, events, scratch):
        hits = found(self, events, scratch)
        return Hits(hits.offsets * 0, hits.slots[:0], hits.counters)

    found = Agile.search
    monkeypatch.setattr(Agile, "search", lossy)
    with pytest.raises(WrongAnswers, match="agile"):
        run_suite(read_suite("mine", SUITE), "smoke", out=tmp_path)


def test_another_workload_is_refused():
    text = SUITE.replace("context:smoke", "uniform:smoke")
    for changed in (", updates_per_profile = 1.0", ", updates_per_profile = 2000.0"):
        text = text.replace(changed, "")
    suite = read_suite("mine", text)
    with pytest.raises(MatchwoodError, match="expected the workload 'context'"):
        run_suite(suite, "smoke")
    with pytest.raises(MatchwoodError, match="runner"):
        read_suite("mine", SUITE.replace('"context"\n', '"other"\n'))


def test_updates_in_one_call_are_those_one_by_one():
    workload = find_workload("context:smoke", n_subscriptions=400, updates_per_profile=500.0)
    one, other = (Filter("agile", {}, workload) for _ in range(2))
    stretch = Stream(workload, one.attributes, one.store).stretch(0, 10)
    one.run(stretch)
    for rows, cols, keys in stretch.updates:
        for i in range(len(keys)):
            other.store.write(rows[i : i + 1], cols[i : i + 1], keys[i : i + 1])
    assert (one.store.cells[:, :, 0] == other.store.cells[:, :, 0]).all()


def test_the_suite_names_the_four_experiments():
    labels = [case.label for case in find_suite("agile").preset("small").cases]
    assert "UP = 10000" in labels
    assert "100 % indexed" in labels
    assert "dU = 2500" in labels
    assert "burst" in labels
