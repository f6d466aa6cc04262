"""Real texts on Spark: read once, counted, and matched as strings that match themselves."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from matchwood.errors import MatchwoodError
from matchwood.spark import match
from matchwood.spark.strings import count_pairs, read_strings, string_events, string_subscriptions
from matchwood.workload.qgrams_text import string_grams

pytestmark = pytest.mark.spark

DBLP = """<?xml version="1.0"?>
<dblp>
<article><author>J&uuml;rgen Ek</author><author>Ann Lee</author>
<title>On <i>trees</i>.</title></article>
<article><author>Ann Lee</author><title>On trees.</title></article>
</dblp>
"""


def test_dblp_is_read_and_repeats_are_counted(spark, tmp_path: Path) -> None:
    (tmp_path / "dblp.xml").write_text(DBLP)
    authors = read_strings(spark, str(tmp_path / "dblp.xml"), "authors")
    assert {row.text: row.n for row in authors.collect()} == {"Jürgen Ek": 1, "Ann Lee": 2}
    titles = read_strings(spark, str(tmp_path / "dblp.xml"), "titles")
    assert {row.text: row.n for row in titles.collect()} == {"On trees.": 2}
    with pytest.raises(MatchwoodError, match="expected a kind among lines, authors, titles"):
        read_strings(spark, "x", "books")


def test_a_log_of_queries_matches_documents_that_have_their_words(spark, tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_text("red apple\nred apple\n\napple\ngreen pear\n")
    (tmp_path / "documents.txt").write_text("a red and round apple\none green apple\n")
    queries = read_strings(spark, str(tmp_path / "log.txt"))
    documents = read_strings(spark, str(tmp_path / "documents.txt"))
    found = match(
        string_events(documents, "keywords"), string_subscriptions(queries, "keywords")
    ).matches.collect()
    assert {row.event_id: sorted(row.subscription_ids) for row in found} == {
        "a red and round apple": ["apple", "red apple"],
        "one green apple": ["apple"],
    }


def test_pairs_are_counted_as_one_process_counts_them(spark, tmp_path: Path) -> None:
    texts = ["banana", "bandana", "canal"]
    (tmp_path / "words.txt").write_text("\n".join(texts))
    rows = count_pairs(read_strings(spark, str(tmp_path / "words.txt"))).collect()
    expected = Counter(pair for text in texts for pair in string_grams(text).items())
    assert {(row.attribute, row.value): row.n for row in rows} == dict(expected)
