"""Strings as expressions: q-grams, the DBLP reader, and the workload made of them."""

from __future__ import annotations

import gzip
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from matchwood import Matcher, parse
from matchwood.errors import FormatError, MatchwoodError
from matchwood.index.scan.index import Scan
from matchwood.workload import (
    QGrams,
    event_dicts,
    find_workload,
    load_events,
    load_subscriptions,
)
from matchwood.workload.dblp import read_dblp
from matchwood.workload.qgrams_corpus import authors, titles
from matchwood.workload.qgrams_strings import encode_strings
from matchwood.workload.qgrams_text import folded, string_expression, string_grams
from searching import search

DBLP = """<?xml version="1.0" encoding="ISO-8859-1"?>
<!DOCTYPE dblp SYSTEM "dblp.dtd">
<dblp>
<article key="journals/x/1" mdate="2011-01-11">
<author>J&uuml;rgen M&ouml;ller 0001</author>
<author>Ann &amp; Bo &#233;</author>
<title>Matching in <i>high<sub>n</sub></i>-dimensional
 space.</title>
<year>2011</year>
</article>
<www key="homepages/1"><author>Zoe Lind</author><title>Home Page</title></www>
<inproceedings key="conf/y/1"><author>Jürgen Möller 0001</author><title>Trees &ndash; again</title>
</inproceedings>
</dblp>
"""
AUTHORS = ["Jürgen Möller 0001", "Ann & Bo é", "Zoe Lind", "Jürgen Möller 0001"]
TITLES = ["Matching in highn-dimensional space.", "Trees – again"]


def saved(path: Path, text: str = DBLP) -> Path:
    data = text.encode("iso-8859-1")
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def average(table: Any, name: str, n: int) -> float:
    return len(table.column(name)) / n


# ------------------------------------------------------------------------------------ expressions


def test_the_papers_example() -> None:
    assert string_grams("string") == {"st": "r", "tr": "i", "ri": "n", "in": "g"}
    expression = string_expression("string")
    assert str(expression) == "st = 'r' AND tr = 'i' AND ri = 'n' AND `in` = 'g'"
    assert parse(str(expression)) == expression


def test_q_may_be_another_number() -> None:
    assert string_grams("tree", 2) == {"t": "r", "r": "e", "e": "e"}
    assert string_grams("string", 4) == {"str": "i", "tri": "n", "rin": "g"}


def test_case_accents_and_other_signs_do_not_count() -> None:
    assert folded("Łódź, GROSS, Þór, Ærø, İstanbul") == "lodz, gross, thor, aero, istanbul"
    assert string_grams("Trées!") == string_grams("trees")
    assert string_grams("trees 0001") == string_grams("trees")


def test_grams_stay_inside_words() -> None:
    assert string_grams("an ox in it") == {}
    assert string_grams("be-tree") == {"tr": "e", "re": "e"}


def test_of_an_attribute_that_comes_twice_the_first_counts() -> None:
    assert string_grams("banana") == {"ba": "n", "an": "a", "na": "n"}
    assert string_grams("canal candy")["an"] == "a"


def test_a_string_without_grams_asks_for_nothing() -> None:
    assert str(string_expression("a, b")) == "TRUE"


def test_a_string_matches_itself_and_what_it_is_part_of() -> None:
    matcher = Matcher()
    for text in ("wood", "match", "matchwood", "canal candy", "banana"):
        matcher.add(text, str(string_expression(text)))
    assert matcher.match(string_grams("matchwood")) == ["wood", "match", "matchwood"]
    assert matcher.match(string_grams("canal candy")) == ["canal candy"]


@pytest.mark.parametrize("q", [2, 3, 4])
def test_arrays_hold_the_same_grams(q: int) -> None:
    strings = [
        *authors(3, 0, 300),
        "",
        "an",
        "Łódź 中文 naïve\nnew line",
        "banana canal candy",
        "x",
    ]
    strings += titles(3, 0, 100)
    found = encode_strings(strings, q)
    names = QGrams(q=q).names
    for i, text in enumerate(strings):
        part = slice(found.start[i], found.start[i + 1])
        attr = [names[a] for a in found.attr[part]]
        value = [chr(ord("a") + v) for v in found.value[part]]
        assert list(zip(attr, value, strict=True)) == list(string_grams(text, q).items())


# ------------------------------------------------------------------------------------------- DBLP


@pytest.mark.parametrize("name", ["dblp.xml", "dblp.xml.gz"])
def test_authors_and_titles_are_read_with_their_entities(tmp_path: Path, name: str) -> None:
    path = saved(tmp_path / name)
    assert list(read_dblp(path, "authors")) == AUTHORS
    assert list(read_dblp(path, "titles")) == TITLES


def test_entities_need_no_document_type(tmp_path: Path) -> None:
    text = "<dblp><article><author>J&uuml;rgen &who; Ek</author></article></dblp>"
    assert list(read_dblp(saved(tmp_path / "d.xml", text), "authors")) == ["Jürgen &who; Ek"]


@pytest.mark.slow
def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    record = "<article><author>Ann Lind</author><title>Some title or other</title></article>\n"
    peaks = []
    for n in (10_000, 25_000):
        path = saved(tmp_path / f"{n}.xml.gz", f"<dblp>{record * n}</dblp>")
        tracemalloc.start()
        try:
            assert sum(1 for _ in read_dblp(path, "authors")) == n
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    assert peaks[1] < 1.2 * peaks[0]


def test_what_stands_before_a_fault_is_read(tmp_path: Path) -> None:
    record = "<article><author>Ann Lind</author></article>\n"
    path = saved(tmp_path / "broken.xml", f"<dblp>{record * 10_000}<article></dblp>")
    reader = read_dblp(path, "authors")
    assert next(reader) == "Ann Lind"
    with pytest.raises(FormatError, match=r"broken\.xml: expected DBLP's XML, found: mismatched"):
        list(reader)


def test_a_torn_gzip_file_is_explained(tmp_path: Path) -> None:
    path = saved(tmp_path / "torn.xml.gz")
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(FormatError, match="expected a whole gzip file"):
        list(read_dblp(path, "authors"))


def test_only_authors_and_titles_can_be_read(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="expected one of authors, titles"):
        list(read_dblp(saved(tmp_path / "d.xml"), "years"))


# --------------------------------------------------------------------------------------- workload


@pytest.mark.parametrize(
    ("preset", "at_least", "at_most"), [("authors", 7.5, 9.5), ("titles", 30, 37)]
)
def test_invented_strings_have_the_sizes_of_the_papers(
    preset: str, at_least: float, at_most: float
) -> None:
    workload = find_workload(f"qgrams:{preset}")
    table = workload.subscriptions(0, 5_000)
    assert at_least < average(table, "id", 5_000) < at_most
    assert set(table.column("operator").cast("string").to_pylist()) == {"="}
    assert len(workload.schema()) == 676


def test_strings_come_once(tmp_path: Path) -> None:
    path = tmp_path / "lines.txt"
    path.write_text("Wei Wang 0001\nwei wang\n\nx\nWANG, Wei\nZoë Lind\n", encoding="utf-8")
    workload = QGrams(source=str(path), n_subscriptions=2)
    found = workload.subscriptions(0, 2).to_pylist()
    assert [(row["id"], row["attribute"], row["values"]) for row in found] == [
        (0, "we", ["i"]),
        (0, "wa", ["n"]),
        (0, "an", ["g"]),
        (1, "zo", ["e"]),
        (1, "li", ["n"]),
        (1, "in", ["d"]),
    ]
    with pytest.raises(MatchwoodError, match="expected 3 different strings, found 2: lower"):
        workload.subscriptions(0, 3)


def test_invented_strings_are_different_subscriptions() -> None:
    table = find_workload("qgrams:smoke").subscriptions(0, 4_000)
    expressions: dict[int, set[tuple[str, str]]] = {}
    columns = (table.column(name).to_pylist() for name in ("id", "attribute", "values"))
    for row, name, values in zip(*columns, strict=True):
        expressions.setdefault(row, set()).add((name, values[0]))
    assert len({frozenset(each) for each in expressions.values()}) == 4_000


def test_a_dblp_file_is_a_source(tmp_path: Path) -> None:
    path = str(saved(tmp_path / "dblp.xml.gz"))
    workload = QGrams(source=path, n_subscriptions=2, n_events=2)
    found = event_dicts(workload.events(0, 2), 0, 2)
    assert found == [string_grams("jurgen moller"), string_grams("ann")]
    of_titles = QGrams(source=path, kind="titles")
    assert event_dicts(of_titles.events(1, 2), 1, 2) == [string_grams("trees again")]


def test_a_source_that_failed_keeps_failing_with_the_same_words(tmp_path: Path) -> None:
    workload = QGrams(source=str(saved(tmp_path / "half.xml", DBLP[:-20])))
    for _ in range(2):
        with pytest.raises(FormatError, match=r"half\.xml: expected DBLP's XML"):
            workload.events(0, 10)


def test_invented_strings_never_change() -> None:
    assert authors(1, 0, 2) == ["Nikolai Baranden", "Florian Ellstein"]
    assert titles(1, 2, 3) == ["Verifiable protocols for ordering spatial polygons"]


def test_bytes_that_are_no_text_part_words(tmp_path: Path) -> None:
    path = tmp_path / "bytes.txt"
    path.write_bytes(b"tree\xffwood\n")
    found = event_dicts(QGrams(source=str(path)).events(0, 1), 0, 1)
    assert found == [string_grams("tree wood")]


def test_every_event_finds_its_own_string() -> None:
    workload = QGrams(n_subscriptions=2_000, n_events=50)
    loaded = load_subscriptions(workload)
    hits = search(Scan.build(loaded.table, loaded.slots), load_events(workload, loaded.attributes))
    for event in range(50):
        assert event in hits.slots[hits.offsets[event] : hits.offsets[event + 1]]


@pytest.mark.slow
@pytest.mark.parametrize("preset", ["authors-match-probability", "titles-match-probability"])
@pytest.mark.parametrize(("operators", "probability"), [("low", 0.01), ("high", 0.001)])
def test_the_match_probability_is_hit_within_a_tenth(
    preset: str, operators: str, probability: float
) -> None:
    workload = find_workload(
        f"qgrams:{preset}",
        n_subscriptions=5_000,
        n_events=100,
        operators=operators,
        match_probability=probability,
    )
    loaded = load_subscriptions(workload)
    batch = load_events(workload, loaded.attributes)
    hits = search(Scan.build(loaded.table, loaded.slots), batch)
    assert len(hits.slots) / 5_000 / 100 == pytest.approx(probability, rel=0.1)
    parameters = workload.parameters()
    assert average(workload.subscriptions(0, 5_000), "id", 5_000) == pytest.approx(
        parameters["predicates"], rel=0.02
    )
    assert average(workload.events(0, 100), "event", 100) == pytest.approx(
        parameters["event_size"], rel=0.02
    )


@pytest.mark.slow
@pytest.mark.parametrize("preset", QGrams.sweeps)
def test_points_of_the_sweeps_are_workloads(preset: str) -> None:
    for point in QGrams.sweeps[preset]:
        workload = find_workload(f"qgrams:{preset}", **point)
        assert len(np.unique(workload.subscriptions(0, 20).column("id"))) == 20


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"q": 1}, "q-grams of 2 to 5 letters"),
        ({"kind": "years"}, "a kind among authors, titles"),
        ({"predicates": 20}, "1 <= min_predicates <= predicates <= event_size"),
    ],
)
def test_a_wrong_parameter_is_explained(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(MatchwoodError, match=message):
        find_workload("qgrams", **changes)


def test_a_source_that_is_no_file_is_explained() -> None:
    with pytest.raises(MatchwoodError, match="expected authors, titles or a file as source"):
        QGrams(source="nowhere.txt").events(0, 1)
