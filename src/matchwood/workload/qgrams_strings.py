"""Strings: the different q-gram expressions of a text, in the order in which they first appear.

String i is the i-th one whose set of q-grams is new: 'Wei Wang 0001' and 'wei wang' are one, and a
string without q-grams is none.  The text is read no further than the highest string asked for.

Layout   (n strings, m q-grams), in parts of some thousand strings each
         start  int64[n+1]   slice of q-grams that belongs to a string
         attr   int32[m]     number of the first q - 1 letters
         value  int64[m]     number of the last letter
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from threading import Lock

import numpy as np

from matchwood.errors import MatchwoodError
from matchwood.kernel.arrays import offsets_of, slices
from matchwood.workload.begen_bases import Bases
from matchwood.workload.dblp import read_dblp
from matchwood.workload.draws import Draws
from matchwood.workload.qgrams_corpus import BATCH, CORPORA, corpus
from matchwood.workload.qgrams_text import LETTERS, folded

_A, _N_LETTERS = ord("a"), len(LETTERS)
_BARREN = 100
"""After so many batches with nothing new an endless corpus has nothing new."""


def open_strings(source: str, kind: str, seed: int) -> Iterator[list[str]]:
    """Batches of strings: a corpus of this package, a DBLP file, or a text with one a line."""
    if source in CORPORA:
        return corpus(source, seed)
    path = Path(source)
    if not path.is_file():
        raise MatchwoodError(
            f"workload 'qgrams': expected {', '.join(CORPORA)} or a file as source, "
            f"found {source!r}"
        )
    if path.suffix == ".xml" or path.suffixes[-2:] == [".xml", ".gz"]:
        return _batches(read_dblp(path, kind))
    return _batches(_lines(path))


def _lines(path: Path) -> Iterator[str]:
    with path.open(encoding="utf-8", errors="replace") as file:
        yield from file


def _batches(strings: Iterable[str]) -> Iterator[list[str]]:
    rest = iter(strings)
    while batch := list(islice(rest, BATCH)):
        yield batch


class Strings:
    """Different strings by number."""

    def __init__(self, batches: Iterator[list[str]], q: int) -> None:
        self._batches = batches
        self._q = q
        self._seen: set[int] = set()
        self._parts: list[Bases] = []
        self._whole = Bases(np.zeros(1, np.int64), np.empty(0, np.int32), np.empty(0, np.int64))
        self._n = 0
        self._failure: MatchwoodError | None = None
        self._lock = Lock()

    def grams(self, numbers: np.ndarray) -> Bases:
        """The q-grams of these strings, one after the other."""
        whole = self._reach(int(numbers.max(initial=-1)) + 1)
        first = whole.start[numbers]
        sizes = whole.start[numbers + 1] - first
        at = slices(first, sizes)
        start = offsets_of(sizes)
        return Bases(start, whole.attr[at], whole.value[at])

    def _reach(self, n: int) -> Bases:
        with self._lock:
            barren = 0
            while self._n < n:
                batch = self._next()
                if batch is None or barren == _BARREN:
                    raise MatchwoodError(
                        f"workload 'qgrams': expected {n:,} different strings, found {self._n:,}: "
                        "lower n_subscriptions or n_events, or take another source"
                    )
                part = self._new(encode_strings(batch, self._q))
                barren = 0 if len(part.start) > 1 else barren + 1
                self._parts.append(part)
                self._n += len(part.start) - 1
            if self._parts:
                self._whole = _joined([self._whole, *self._parts])
                self._parts = []
            return self._whole

    def _next(self) -> list[str] | None:
        """The next batch; a source that failed once keeps failing, with the same words."""
        if self._failure is not None:
            raise self._failure
        try:
            return next(self._batches, None)
        except MatchwoodError as error:
            self._failure = error
            raise

    def _new(self, found: Bases) -> Bases:
        """Without the strings that are empty or were there before."""
        sizes = np.diff(found.start)
        marks = Draws(0, "qgrams", found.attr * _N_LETTERS + found.value).bits("mark")[:, 0]
        sums = np.concatenate([[np.uint64(0)], np.cumsum(marks)])  # modulo 2^64, as is the rest
        kept = []
        for i, mark in enumerate((sums[found.start[1:]] - sums[found.start[:-1]]).tolist()):
            if sizes[i] and mark not in self._seen:
                self._seen.add(mark)
                kept.append(i)
        rows = np.array(kept, np.int64)
        at = slices(found.start[rows], sizes[rows])
        start = offsets_of(sizes[rows])
        return Bases(start, found.attr[at], found.value[at])


def encode_strings(strings: list[str], q: int) -> Bases:
    """The q-grams of each string in order, each attribute once: `string_grams` on arrays."""
    text = "\n".join(folded(each).replace("\n", " ") for each in strings)
    # A sign outside ASCII is one that `folded` could not turn into letters: it parts words.
    letters = np.frombuffer(text.encode("ascii", "replace"), np.uint8).astype(np.int64) - _A
    n = max(len(letters) - q + 1, 0)
    good = np.ones(n, bool)
    attr = np.zeros(n, np.int64)
    for i in range(q):
        letter = letters[i : i + n]
        good &= (letter >= 0) & (letter < _N_LETTERS)
        if i < q - 1:
            attr = attr * _N_LETTERS + letter
    at = np.flatnonzero(good)
    ends = np.flatnonzero(letters == ord("\n") - _A)
    string, attr = np.searchsorted(ends, at), attr[at]
    first = np.sort(np.unique(string * _N_LETTERS ** (q - 1) + attr, return_index=True)[1])
    start = np.searchsorted(string[first], np.arange(len(strings) + 1))
    return Bases(start, attr[first].astype(np.int32), letters[at[first] + q - 1])


def _joined(parts: list[Bases]) -> Bases:
    sizes = np.concatenate([np.diff(part.start) for part in parts])
    return Bases(
        offsets_of(sizes),
        np.concatenate([part.attr for part in parts]),
        np.concatenate([part.value for part in parts]),
    )
