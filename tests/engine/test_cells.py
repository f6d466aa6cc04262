"""Cells of CSV are texts: predicates of each kind read them as values of their own kind."""

from __future__ import annotations

import matchwood as mw
from matchwood.engine.formats.files import read_events

TEXTS = {
    "number": "x > 5",
    "string": "x = '7'",
    "prefix": "x LIKE '7%'",
    "bool": "x",
    "date": "x >= DATE '2026-02-01'",
    "unlike": "NOT x > 5",
    "there": "x IS NOT NULL",
    "not a number": "(x > 5) IS UNKNOWN",
}


def found(tmp_path, cells: list[str], ids: tuple[str, ...]) -> list[list[str]]:
    m = mw.Matcher()
    for id_ in ids:
        m.add(id_, TEXTS[id_])
    path = tmp_path / "events.csv"
    path.write_text("\n".join(["event_id,x", *[f"{i},{cell}" for i, cell in enumerate(cells)]]))
    matches = [m.match_many(part.events) for part in read_events(path, m.schema)]
    return [list(each) for part in matches for each in part]


def test_a_cell_is_read_as_each_kind_that_predicates_ask_for(tmp_path):
    cells = ["7", "7a", "true", "2026-02-03", ""]
    assert found(tmp_path, cells, tuple(TEXTS)) == [
        ["number", "string", "prefix", "there"],
        ["prefix", "there", "not a number"],
        ["bool", "there", "not a number"],
        ["date", "there", "not a number"],
        ["not a number"],
    ]


def test_what_one_subscription_finds_does_not_depend_on_the_others(tmp_path):
    cells = ["7", "07", "7a", "true", "2026-02-03", "", " 8 "]
    together = found(tmp_path, cells, tuple(TEXTS))
    for id_ in TEXTS:
        alone = found(tmp_path, cells, (id_,))
        assert [id_ in each for each in together] == [id_ in each for each in alone], id_
