"""duplicates, overlaps, subsumes, near and why-not; ids that look alike."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import matchwood as mw
from commands import call

RULES = [
    (7, "price < 20"),
    ("7", "NOT price >= 20"),
    ("bargain", "price < 5 AND stock > 0"),
    ("odd", "price < ctx.budget"),
    ("never", "price < 1 AND price > 2"),
    ("dear", "price > 100"),
]


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    path = tmp_path / "rules.jsonl"
    rows = [{"id": id_, "expr": text} for id_, text in RULES]
    rows[3]["context"] = "ann"
    lines = [json.dumps(row) for row in rows]
    path.write_text("\n".join([*lines, '{"id": "bad", "expr": "price <"}']) + "\n")
    return path


def answer(*words: object, **more: Any) -> Any:
    """What `--json` prints."""
    found = call(*words, "--json", **more)
    assert found.exit_code == 0, found.stderr
    return json.loads(found.stdout)


def library() -> mw.Matcher:
    m = mw.Matcher()
    for id_, text in RULES:
        m.add(id_, text, context="ann" if id_ == "odd" else None)
    return m


def test_the_command_tells_the_relations_of_the_library(rules: Path) -> None:
    m = library()
    found = answer("duplicates", rules)
    assert found == {"subscriptions": 6, "refused": 1, "duplicates": m.duplicates()}
    assert found["duplicates"] == [[7, "7"]]
    for text, id_ in (("7", 7), ('"7"', "7"), ("bargain", "bargain"), ('"odd"', "odd")):
        about = {"subscriptions": 6, "refused": 1, "id": id_}
        found = answer("overlaps", rules, "--id", text)
        related = m.overlaps(id_)
        assert found == about | {"overlaps": list(related), "unknown": related.unknown}
        others = [each for each, _ in RULES if each not in (id_, "never")]
        truths = {each: (m.subsumes(id_, each), m.subsumes(each, id_)) for each in others}
        assert answer("subsumes", rules, "--id", text) == about | {
            "subsumes": [each for each in others if truths[each][0]],
            "subsumed_by": [each for each in others if truths[each][1]],
            "unknown": [each for each in others if None in truths[each]],
        }
        for each in others:
            other = ("--other", json.dumps(each))
            assert answer("subsumes", rules, "--id", text, *other)["subsumes"] == truths[each][0]


def test_relations_are_read_by_people(rules: Path) -> None:
    shown = call("duplicates", rules)
    assert shown.stdout == "7 = '7'\n6 subscriptions: 1 could be left out\n"
    assert shown.stderr == "matchwood: 1 subscription left out: validate names them\n"
    lines = call("overlaps", rules, "--id", "bargain").stdout.splitlines()
    assert "'bargain' overlaps 7" in lines
    assert "not decided: 'bargain' overlaps 'odd'" in lines
    lines = call("subsumes", rules, "--id", "bargain").stdout.splitlines()
    assert "7 subsumes 'bargain'" in lines
    assert lines[-1] == "6 subscriptions: 'bargain' subsumes 0 and is subsumed by 2"
    shown = call("subsumes", rules, "--id", "bargain", "--other", 7).stdout
    assert shown == "'bargain' does not subsume 7\n"


def test_duplicates_can_end_with_1(rules: Path, tmp_path: Path) -> None:
    assert call("duplicates", rules).exit_code == 0
    assert call("duplicates", rules, "--strict").exit_code == 1
    (tmp_path / "one.txt").write_text("price < 20\n")
    assert call("duplicates", tmp_path / "one.txt", "--strict").exit_code == 0
    assert call("duplicates", "-", "--strict", input="a = 1\nNOT a <> 1\n").exit_code == 1


def test_the_number_and_the_text_7_have_names_of_their_own(rules: Path) -> None:
    source = ("explain", "--subscriptions", rules, "--event", "{}", "--id")
    assert answer(*source, "7")["id"] == 7
    assert answer(*source, '"7"')["id"] == "7"
    for text in ("007", "--7", "[" * 9999, "9" * 9999, "nope"):
        found = call(*source[:-1], f"--id={text}")
        assert found.exit_code == 1
        assert found.stderr.startswith("matchwood: expected the id of a subscription, found")


EVENTS: list[dict[str, Any]] = [
    {"event_id": "a", "price": 30.0},
    {"event_id": "b", "price": 3.0, "stock": 0},
    {"event_id": "c", "price": 1.0, "stock": 5},
]


def misses(m: mw.Matcher, event: Any, k: int = 10) -> list[dict[str, Any]]:
    found = m.near(event, k)
    return [{"id": e.id, "missing": str(e.missing), "found": e.found} for e in found]


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet", "stream"])
def test_near_and_why_not_take_events_as_match_does(
    ending: str, rules: Path, tmp_path: Path
) -> None:
    source: Any = tmp_path / f"events.{ending}"
    text = "".join(json.dumps(each) + "\n" for each in EVENTS)
    more: dict[str, Any] = {}
    if ending == "parquet":
        pq.write_table(pa.Table.from_struct_array(pa.array(EVENTS)), source)
    elif ending == "csv":
        source.write_text("event_id,price,stock\na,30.0,\nb,3.0,0\nc,1.0,5\n")
    elif ending == "stream":
        source, more = "-", {"input": text}
    else:
        source.write_text(text)
    m = library()
    found = answer("near", rules, source, "--limit", 2, **more)
    assert found["events"] == [{"event": e["event_id"], "near": misses(m, e, 2)} for e in EVENTS]
    assert (found["subscriptions"], found["refused"], found["bad"]) == (6, 1, 0)
    reasons = [m.why_not("bargain", e) for e in EVENTS]
    assert answer("why-not", rules, source, "--id", "bargain", **more)["events"] == [
        {"event": e["event_id"], "matches": not each, "reasons": each}
        for e, each in zip(EVENTS, reasons, strict=True)
    ]


def test_near_takes_events_in_every_shape(rules: Path, tmp_path: Path) -> None:
    rows = [{k: v for k, v in each.items() if k != "event_id"} for each in EVENTS]
    columns = {
        "struct": pa.array(rows),
        "map": pa.array([list(row.items()) for row in rows], pa.map_(pa.string(), pa.float64())),
        "texts": pa.array(
            [[(k, str(v)) for k, v in row.items()] for row in rows],
            pa.map_(pa.string(), pa.string()),
        ),
        "json": pa.array([json.dumps(row) for row in rows]),
        "arrays": pa.array([list(row) for row in rows]),
    }
    m = library()
    for shape, column in columns.items():
        table = pa.table({"event_id": ["a", "b", "c"], "attributes": column})
        if shape == "arrays":
            table = table.append_column("values", pa.array([list(row.values()) for row in rows]))
        pq.write_table(table, tmp_path / "e.parquet")
        found = answer("near", rules, tmp_path / "e.parquet")["events"]
        ids = [[miss["id"] for miss in each["near"]] for each in found]
        assert ids == [[miss.id for miss in m.near(row)] for row in rows], shape


def test_near_and_why_not_take_one_event(rules: Path, tmp_path: Path) -> None:
    found = call("near", rules, "--event", '{"price": 30}')
    assert found.stdout.splitlines() == [
        "7 lacks price < 20: price is 30", "'7' lacks price < 20: price is 30",
        "'dear' lacks price > 100: price is 30", "6 subscriptions, 1 event: 3 near misses",
    ]  # fmt: skip
    (tmp_path / "ann.jsonl").write_text('{"context": "ann", "budget": 20}\n')
    words = ("why-not", rules, "--id", "odd", "--contexts", tmp_path / "ann.jsonl")
    found = call(*words, "--event", '{"price": 30}')
    assert "price is 30" in found.stdout
    assert found.stdout.endswith("'odd' matches 0 of 1 event\n")
    assert answer(*words, "--event", '{"price": 3}')["events"][0]["matches"] is True


def test_events_that_cannot_be_read_are_counted(rules: Path, tmp_path: Path) -> None:
    (tmp_path / "e.jsonl").write_text('{"price": 3}\nnonsense\n{"price": {}}\n')
    found = call("near", rules, tmp_path / "e.jsonl", "--json")
    assert json.loads(found.stdout)["bad"] == 1
    assert "1 event left out" in found.stderr


WRONG = [
    (1, "overlaps RULES --id nope", "there is none"),
    (1, "subsumes RULES --id 7 --other nope", "there is none"),
    (1, "why-not RULES --id nope --event {}", "there is none"),
    (2, "overlaps RULES", "--id"),
    (2, "near RULES", "expected either EVENTS (or -) or --event JSON, found neither"),
    (2, "near RULES e.jsonl --event {}", "found both"),
    (2, "near - -", "expected one of SUBSCRIPTIONS and EVENTS"),
    (2, "near RULES --event [1]", "expected a JSON object as --event"),
    (2, "near RULES nowhere.jsonl", "found nothing"),
    (2, "near RULES --event {} --limit 0", "--limit"),
    (2, "duplicates nowhere.csv", "found nothing"),
]


@pytest.mark.parametrize(("code", "line", "said"), WRONG)
def test_wrong_calls_end_with_a_sentence(code: int, line: str, said: str, rules: Path) -> None:
    found = call(*line.replace("RULES", str(rules)).split())
    assert found.exit_code == code, found.output
    assert said in found.stderr
    assert found.stdout == ""
