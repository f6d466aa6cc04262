"""`generate`, `match` and `demo` on Spark, in the session of the tests."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import matchwood as mw
from commands import call
from matchwood.cli import demo_spark
from spark import context_logs
from spark.bookshop_frames import flat, shop, text
from spark.logs import committed, dead_letters, write_cuts

pytestmark = pytest.mark.spark

TEXTS, EVENTS = shop(1500, 80)


def written(folder: Path) -> set[tuple[int, int]]:
    if folder.suffix == ".parquet":
        rows = pq.read_table(folder).to_pylist()
    else:
        rows = [json.loads(x) for f in folder.glob("*.json") for x in f.read_text().splitlines()]
    return {(row["event"], row["subscription"]) for row in rows}


def test_generated_files_are_matched(spark, tmp_path: Path) -> None:
    made = call(
        "generate", "begen:smoke", "--out", tmp_path, "--subscriptions", 2000, "--events", 50,
        "--set", "n_attributes=40", "--json",
    )  # fmt: skip
    assert made.exit_code == 0, made.stderr
    assert json.loads(made.stdout)["subscriptions"]["rows"] == 2000
    out = tmp_path / "matches.parquet"
    arguments = (
        "match", "--subscriptions", tmp_path / "subscriptions", "--events", tmp_path / "events",
        "--out", out, "--snapshots", tmp_path / "indexes", "--json",
    )  # fmt: skip
    done = call(*arguments)
    assert done.exit_code == 0, done.stderr
    found = json.loads(done.stdout)
    matcher = mw.Matcher()
    matcher.add_many(pq.read_table(tmp_path / "subscriptions"))
    events = pq.read_table(tmp_path / "events").to_pylist()
    dicts = [dict(zip(e["attributes"], e["values"], strict=True)) for e in events]
    expected = {
        (event["event_id"], id_)
        for event, ids in zip(events, matcher.match_many(dicts), strict=True)
        for id_ in ids
    }
    assert len(expected) > 100
    assert written(out) == expected
    assert found["matches"] == len(expected)
    assert found["subscriptions"]["reused"] is False
    assert json.loads(call(*arguments).stdout)["subscriptions"]["reused"] is True


@pytest.mark.parametrize("ending", ["parquet", "jsonl", "csv"])
def test_every_format_gives_the_local_answer(spark, ending: str, tmp_path: Path) -> None:
    events = [{**event, "event_id": n} for n, event in enumerate(EVENTS)]
    source = tmp_path / f"offers.{ending}"
    if ending == "parquet":
        pq.write_table(pa.Table.from_struct_array(pa.array(events)), source)
    elif ending == "jsonl":
        source.write_text("".join(json.dumps(e, default=text) + "\n" for e in events))
    else:
        rows = [flat(event) for event in events]
        names = sorted({name for row in rows for name in row})
        lines = [",".join(text(row[n]) if n in row else "" for n in names) for row in rows]
        source.write_text("\n".join([",".join(names), *lines]) + "\n")
    wishes = tmp_path / "wishes.jsonl"
    bad = {"id": 9999, "expr": "price <"}
    rows = [*({"id": n, "expr": each} for n, each in enumerate(TEXTS)), bad]
    wishes.write_text("".join(json.dumps(row) + "\n" for row in rows))
    out = tmp_path / "matches.json"
    done = call(
        "match", "--subscriptions", wishes, "--events", source, "--out", out, "--strict", "--spark"
    )
    assert done.exit_code == 1  # --strict, and one is bad
    matcher = mw.Matcher()
    matcher.add_many(list(enumerate(TEXTS)))
    found = matcher.match_many(EVENTS).to_arrow().to_pylist()
    assert written(out) == {(row["event"], row["subscription"]) for row in found}
    (problem,) = map(json.loads, (tmp_path / "matches.json.errors.jsonl").read_text().splitlines())
    assert (problem["of"], problem["id"], problem["error"]) == (
        "subscription",
        "9999",
        "ParseError",
    )


def test_optional_columns_come_from_files(spark, tmp_path: Path) -> None:
    rows = [
        {"id": 1, "expr": "price < 9", "priority": 1, "attributes": {"city": "Rome"}},
        {"id": 2, "expr": "price < 9", "priority": 5, "attributes": {"city": "Oslo"}},
        {"id": 3, "expr": "price < ctx.budget", "context": "ann", "priority": 3},
        {"id": 4, "expr": "price < 9", "priority": 7, "expires": "2020-01-01"},
        {"id": 5, "expr": "price < 9", "priority": 2, "expires": "9000-01-01T00:00:00+02:00"},
        {"id": 6, "expr": "price < 9", "priority": "much"},
        {"id": 7, "expr": "price < 9", "expires": "soon"},
    ]
    wishes, offers, values = (tmp_path / f"{name}.jsonl" for name in ("wishes", "offers", "ctx"))
    for file, lines in (
        (wishes, rows),
        (offers, [{"event_id": 1, "price": 5}, {"event_id": 2, "price": 5, "filter": "city > 'P'"},
                  {"event_id": 3, "price": 5, "filter": "city >"}]),
        (values, [{"context": "ann", "budget": 8}]),
    ):  # fmt: skip
        file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    out = tmp_path / "matches.json"
    arguments = ("match", "--subscriptions", wishes, "--events", offers, "--out")
    options = ("--contexts", values, "--limit", 3, "--lists")
    done = call(*arguments, out, *options, "--json", "--spark")
    assert done.exit_code == 0, done.stderr
    found = [json.loads(x) for f in out.glob("*.json") for x in f.read_text().splitlines()]
    assert {row["event"]: row["subscriptions"] for row in found} == {1: [2, 3, 5], 2: [1]}
    problems = (tmp_path / "matches.json.errors.jsonl").read_text().splitlines()
    told = {(each["of"], str(each["id"])): each["message"] for each in map(json.loads, problems)}
    assert set(told) == {("subscription", "6"), ("subscription", "7"), ("event", "3")}
    assert "priority: expected a whole number, found 'much'" in told["subscription", "6"]
    here = call(*arguments, tmp_path / "local.json", *options, "--local")
    assert here.exit_code == 0, here.stderr
    in_one = [json.loads(x) for x in (tmp_path / "local.json").read_text().splitlines()]
    assert in_one == sorted(found, key=lambda row: row["event"])
    problems = (tmp_path / "local.json.errors.jsonl").read_text().splitlines()
    assert told == {
        (each["of"], str(each["id"])): each["message"] for each in map(json.loads, problems)
    }
    for where in ("--spark", "--local"):
        target = tmp_path / f"where{where}.json"
        done = call(*arguments, target, *options, where, "--where", "city < 'P'")
        assert done.exit_code == 0, done.stderr
        files = target.glob("*.json") if target.is_dir() else [target]
        rows = [json.loads(x) for f in files for x in f.read_text().splitlines()]
        assert {row["event"]: row["subscriptions"] for row in rows} == {1: [2], 2: []}


def test_a_demo_that_differs_from_spark_sql_ends_with_1(spark, monkeypatch) -> None:
    monkeypatch.setattr(demo_spark, "in_spark_sql", lambda *_: {n: {0} for n in range(300)})
    wrong = call("demo", "--subscriptions", 800, "--events", 300, "--json")
    assert wrong.exit_code == 1
    assert "differ from Spark SQL's" in wrong.stderr


def test_a_stream_of_files_is_matched_once(spark, tmp_path: Path) -> None:
    log = context_logs.made_log(6, 60)
    expected, refused = context_logs.sequential(log)
    write_cuts(tmp_path / "log", log, [30])
    types = [f"--type={name}={kind}" for name, kind in mw.Schema(context_logs.TYPES).items()]
    arguments = (
        "stream", "--log", tmp_path / "log", "--out", tmp_path / "out", "--state",
        tmp_path / "state", "--once", "--option", "maxFilesPerTrigger=1", "--json",
        *types,
    )  # fmt: skip
    done = call(*arguments)
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout) | {"seconds": 0} == {"batches": 2, "records": 60, "seconds": 0}
    assert json.loads(call(*arguments).stdout)["records"] == 0
    assert committed(tmp_path / "out") == expected
    assert len(dead_letters(tmp_path / "out")) == refused
    wrong = call("stream", "--out", tmp_path, "--state", tmp_path, "--kafka", "localhost:9092")
    assert wrong.exit_code == 2


def test_events_without_ids_are_refused(spark, tmp_path: Path) -> None:
    pq.write_table(pa.table({"price": [1]}), tmp_path / "offers.parquet")
    pq.write_table(pa.table({"id": [1], "expr": ["price < 2"]}), tmp_path / "wishes.parquet")
    done = call(
        "match", "--subscriptions", tmp_path / "wishes.parquet",
        "--events", tmp_path / "offers.parquet", "--out", tmp_path / "m.parquet", "--spark",
    )  # fmt: skip
    assert done.exit_code == 2
    assert "expected event_id" in done.stderr


ODD = {
    "csv": '\ufeffevent_id,price,genre\r\n1,5,"say ""hi"""\r\n2,7,"two\nlines"\r\n3,9\r\n'
    '4,1,a,b\r\n\r\n5,,"x, y"\r\n,3,a\r\n6,much,a\r\n',
    "json": '[{"event_id": 1, "price": 5, "genre": "x, y"}, {"event_id": 2, "price": "much"}, 7,'
    '{"event_id": 3, "price": NaN}]',
    "jsonl": '{"event_id": 1, "price": 5}\n{broken\n\n[1]\n{"price": 5}\n'
    '{"event_id": 4, "price": NaN}\n{"event_id": 5, "price": 5, "x": -Infinity}\n'
    '{"event_id": 3, "price": 1, "genre": "say \\"hi\\""}\n',
    "ndjson": '\ufeff{"event_id": 1, "price": 5}\n',
}


@pytest.mark.parametrize("ending", [*ODD, "csv.gz", "jsonl.gz"])
def test_odd_files_mean_the_same_with_and_without_spark(spark, ending: str, tmp_path: Path) -> None:
    source, wishes = tmp_path / f"offers.{ending}", tmp_path / "wishes.csv"
    text = ODD[ending.removesuffix(".gz")].encode()
    source.write_bytes(gzip.compress(text) if ending.endswith(".gz") else text)
    texts = ["price < 6", "genre = 'say \\\"hi\\\"'", "genre LIKE 'two%'", "genre = 'x, y'"]
    rows = "".join(f'{n},"{each.replace(chr(34), chr(34) * 2)}"\n' for n, each in enumerate(texts))
    wishes.write_text("id,expr\n" + rows)
    given = ("match", "--subscriptions", wishes, "--events", source, "--json")
    here = json.loads(call(*given, "--out", tmp_path / "here.jsonl", "--local").stdout)
    done = call(*given, "--out", tmp_path / "there.json", "--spark")
    assert done.exit_code == 0, done.stderr
    there = json.loads(done.stdout)
    pairs = [json.loads(line) for line in (tmp_path / "here.jsonl").read_text().splitlines()]
    assert written(tmp_path / "there.json") == {(p["event"], p["subscription"]) for p in pairs}
    assert pairs
    assert (here["matches"], here["problems"]) == (there["matches"], there["problems"])


def test_a_report_of_problems_is_of_this_call(spark, tmp_path: Path) -> None:
    offers, wishes = tmp_path / "offers.parquet", tmp_path / "wishes.csv"
    pq.write_table(pa.table({"event_id": [1], "price": [1]}), offers)
    out = tmp_path / "found.parquet"
    given = ("match", "--subscriptions", wishes, "--events", offers, "--out", f"file://{out}")
    wishes.write_text("id,expr\n1,price < 2\n2,price <\n")
    assert call(*given).exit_code == 0
    report = tmp_path / "found.parquet.errors.jsonl"
    assert report.exists()
    wishes.write_text("id,expr\n1,price < 2\n")
    none = pa.array([], pa.int64())
    pq.write_table(pa.table({"event_id": none, "price": none}), offers)  # and no event at all
    done = call(*given, "--json")
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["events"]["used"] == 0
    assert not report.exists()
    assert written(out) == set()


def test_what_spark_refuses_is_a_sentence_and_inputs_are_never_removed(
    spark, tmp_path: Path
) -> None:
    offers, inside = tmp_path / "offers.parquet", tmp_path / "out.parquet" / "wishes.parquet"
    offers.write_bytes(b"no Parquet")
    inside.parent.mkdir()
    pq.write_table(pa.table({"id": [1], "expr": ["price < 2"]}), inside)
    done = call(
        "match", "--subscriptions", inside, "--events", offers, "--out", tmp_path / "found.json",
        "--spark",
    )  # fmt: skip
    assert done.exit_code == 2
    assert done.stderr.splitlines()[-1].startswith("matchwood: Spark failed: ")
    assert len(done.stderr.splitlines()) == 2  # where it matches, and the error
    wrong = call(
        "match", "--subscriptions", inside, "--events", offers, "--out", inside.parent, "--spark"
    )
    assert wrong.exit_code == 2
    assert inside.exists()


def test_counts_are_those_of_this_process(spark, tmp_path: Path) -> None:
    (tmp_path / "wishes.csv").write_text("id,expr\n1,price < 20\n2,price < 10\n")
    offers = [{"event_id": n, "price": price} for n, price in enumerate([15, 5, 50])]
    lines = [*map(json.dumps, offers), '{"event_id": 9, "price": {}}']
    (tmp_path / "offers.jsonl").write_text("\n".join(lines) + "\n")
    words = ("match", tmp_path / "wishes.csv", tmp_path / "offers.jsonl", "--json", "--out")
    for shape in ("--count", "--exists"):
        done = call(*words, tmp_path / "there.parquet", shape, "--spark")
        assert done.exit_code == 0, done.stderr
        here = call(*words, tmp_path / "here.parquet", shape, "--local")
        assert json.loads(done.stdout)["matches"] == json.loads(here.stdout)["matches"] == 3
        both = [pq.read_table(tmp_path / f"{name}.parquet") for name in ("there", "here")]
        assert both[0].schema.types == both[1].schema.types
        assert both[0].sort_by("event").to_pylist() == both[1].to_pylist()
