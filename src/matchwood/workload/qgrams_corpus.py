"""Invented authors and titles, as many as needed, from the word lists in `corpus/`.

The lists were written for this package; string i follows from (seed, i).  There are 25 million
names without second names, and more titles, so strings seldom repeat within the paper's 760,000.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.resources import files

import numpy as np

from matchwood.workload.draws import Draws

AUTHORS, TITLES = "authors", "titles"
CORPORA = (AUTHORS, TITLES)
BATCH = 10_000

_SECOND_NAME = 0.1
_MIDDLE_PART = 0.5
_SLOT = re.compile(r"\{(\w+)\}")


def corpus(name: str, seed: int) -> Iterator[list[str]]:
    """Batches of strings without end.

    >>> next(corpus("authors", 1))[:2]
    ['Nikolai Baranden', 'Florian Ellstein']
    """
    make = {AUTHORS: authors, TITLES: titles}[name]
    first = 0
    while True:
        yield make(seed, first, first + BATCH)
        first += BATCH


def authors(seed: int, first: int, last: int) -> list[str]:
    """Authors first .. last - 1."""
    draws = Draws(seed, "qgrams/authors", np.arange(first, last))
    lists = _lists(AUTHORS)
    given, second, start, middle, end = (
        _choose(draws, column, lists[name])
        for column, name in [
            ("given", "given"),
            ("second", "given"),
            ("start", "family_start"),
            ("middle", "family_middle"),
            ("end", "family_end"),
        ]
    )
    second = np.where(draws.unit("has second")[:, 0] < _SECOND_NAME, " " + second, "")
    middle = np.where(draws.unit("has middle")[:, 0] < _MIDDLE_PART, middle, "")
    names: list[str] = (given + second + " " + start + middle + end).tolist()
    return names


def titles(seed: int, first: int, last: int) -> list[str]:
    """Titles first .. last - 1."""
    draws = Draws(seed, "qgrams/titles", np.arange(first, last))
    lists = _lists(TITLES)
    pattern = draws.below("pattern", len(lists["pattern"]))[:, 0]
    found = np.empty(last - first, object)
    for number, text in enumerate(lists["pattern"].tolist()):
        at = np.flatnonzero(pattern == number)
        parts = _SLOT.split(text)
        whole = np.full(len(at), parts[0], object)
        for slot, (name, after) in enumerate(zip(parts[1::2], parts[2::2], strict=True)):
            whole = whole + _choose(draws, f"word {slot}", lists[name])[at] + after
        found[at] = whole
    return [each[0].upper() + each[1:] for each in found.tolist()]


def _choose(draws: Draws, column: str, words: np.ndarray) -> np.ndarray:
    chosen: np.ndarray = words[draws.below(column, len(words))[:, 0]]
    return chosen


@cache
def _lists(name: str) -> dict[str, np.ndarray]:
    text = files("matchwood.workload").joinpath("corpus", f"{name}.toml").read_text("utf-8")
    return {key: np.array(words, object) for key, words in tomllib.loads(text).items()}
