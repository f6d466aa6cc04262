"""QueryLog: keyword queries as conjunctions of equalities, documents as events.

Idea.    Every query is a subscription, every document an event: see `querylog_text`.  A document
         matches the queries all of whose keywords it has.
Source.  PS-Tree, sections 7.1 and 7.3: 2.1 million subscriptions of 2.78 predicates over 17,577
         dimensions, events of 93.07 pairs.
Differs. The log of the SIGMOD 2013 contest is not shipped.  Without files, queries and documents
         are invented: words of letters, each equally likely (nearly all 17,576 prefixes of three
         letters are attributes then), and some words much more popular than others.
Chosen   where the paper is silent: a vocabulary of 100,000 words under Zipf's law of exponent 1;
         queries of one to five different words, documents of 48 to 140.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from matchwood.encode.schema import Schema
from matchwood.errors import MatchwoodError
from matchwood.workload.begen_draw_kernels import draw_distinct
from matchwood.workload.draws import Draws
from matchwood.workload.interface import Workload
from matchwood.workload.qgrams_text import LETTERS
from matchwood.workload.querylog_text import text_pairs, texts_of
from matchwood.workload.tables import coded, entry_table, predicate_table

_QUERY_SIZES = (0.15, 0.30, 0.27, 0.18, 0.10)
"""Shares of queries with one to five words: 2.78 on average."""

_SHORTEST, _LONGEST = 48, 140
"""Words of a document; 94 on average, some of which share an attribute."""

_N_LETTERS = len(LETTERS)
_HALF = _N_LETTERS**3


@dataclass(frozen=True, kw_only=True)
class QueryLog(Workload):
    """Keyword queries and documents (PS-Tree paper).

    queries      a file with one query a line, or a test file of the SIGMOD 2013 contest; '' for
                 invented ones
    documents    the same for documents; a file of the contest has both
    n_words      words of the invented vocabulary
    exponent     of Zipf's law, by which some words are more popular than others
    """

    name: ClassVar[str] = "querylog"
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "smoke": {"n_subscriptions": 10_000},
        "small": {"n_subscriptions": 100_000},
        "default": {"n_subscriptions": 2_100_000},
    }

    queries: str = ""
    documents: str = ""
    n_words: int = 100_000
    exponent: float = 1.0

    def __post_init__(self) -> None:
        self._expect(self.n_words > _LONGEST, f"more than {_LONGEST} words")
        self._expect(self.exponent >= 0, "an exponent from 0")

    def schema(self) -> Schema:
        return Schema(dict.fromkeys(_names(), "string"))

    def subscriptions(self, first: int, last: int) -> pa.Table:
        rows = np.arange(first, last)
        row, name, value = (
            _read(self.queries, "queries", first, last)
            if self.queries
            else self._invented_queries(rows)
        )
        n = len(row)
        return predicate_table(
            row, coded(name, _names()), coded(np.zeros(n), ["="]), np.ones(n, np.int64), value
        )

    def events(self, first: int, last: int) -> pa.Table:
        rows = np.arange(first, last)
        row, name, value = (
            _read(self.documents, "documents", first, last)
            if self.documents
            else self._invented_texts(rows)
        )
        return entry_table(row, coded(name, _names()), value)

    def _invented_queries(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, pa.Array]:
        draws = Draws(self.seed, "querylog/queries", rows)
        sizes = 1 + np.searchsorted(np.cumsum(_QUERY_SIZES)[:-1], draws.unit("size")[:, 0])
        return self._pairs(rows, "queries", sizes, len(_QUERY_SIZES))

    def _invented_texts(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, pa.Array]:
        draws = Draws(self.seed, "querylog/documents", rows)
        sizes = _SHORTEST + draws.below("size", _LONGEST - _SHORTEST + 1)[:, 0]
        return self._pairs(rows, "documents", sizes, _LONGEST)

    def _pairs(
        self, rows: np.ndarray, table: str, sizes: np.ndarray, most: int
    ) -> tuple[np.ndarray, np.ndarray, pa.Array]:
        """Row, number of the attribute and value of each keyword, an attribute once in a row."""
        weights = np.arange(1.0, self.n_words + 1) ** -self.exponent
        key = Draws(self.seed, f"querylog/{table}", np.zeros(1)).bits("word")[0, 0]
        word = np.empty((len(rows), most), np.int64)
        draw_distinct(key, rows, np.cumsum(weights), word)
        used = np.arange(most)[None, :] < sizes[:, None]
        row, found = np.repeat(rows, sizes), word[used]
        letters = Draws(self.seed, "querylog/words", found)
        prefix, rest = letters.below("prefix", _HALF)[:, 0], letters.below("rest", _HALF)[:, 0]
        first = np.sort(np.unique(row * _HALF + prefix, return_index=True)[1])
        return row[first], _first_of_three() + prefix[first], _three_letters(rest[first])


@lru_cache(maxsize=1)
def _names() -> list[str]:
    """Every prefix of one to three letters."""
    return ["".join(letters) for n in (1, 2, 3) for letters in product(LETTERS, repeat=n)]


def _first_of_three() -> int:
    return _N_LETTERS + _N_LETTERS**2


def _three_letters(numbers: np.ndarray) -> pa.Array:
    return pa.array(_names()[_first_of_three() :]).take(pa.array(numbers))


def _read(path: str, kind: str, first: int, last: int) -> tuple[np.ndarray, np.ndarray, pa.Array]:
    texts = _texts(path, kind)
    if last > len(texts):
        raise MatchwoodError(
            f"workload 'querylog': expected {last:,} texts with keywords in {path}, found "
            f"{len(texts):,}: lower n_subscriptions or n_events"
        )
    part = texts[first:last]
    row = np.repeat(np.arange(first, last), [len(pairs) for pairs in part])
    number = {name: i for i, name in enumerate(_names())}
    name = np.array([number[name] for pairs in part for name in pairs], np.int64)
    values = [value for pairs in part for value in pairs.values()]
    return row, name, pa.array(values, pa.string())


@lru_cache(maxsize=4)
def _texts(path: str, kind: str) -> list[dict[str, str]]:
    """The texts of a file that have keywords."""
    try:
        lines = Path(path).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as error:
        raise MatchwoodError(
            f"workload 'querylog': expected a file with one text a line, found {error.strerror}: "
            f"{path}"
        ) from None
    return [pairs for text in texts_of(lines, kind) if (pairs := text_pairs(text))]
