"""Keywords as predicates, texts as conjunctions and events (PS-Tree, section 7.1).

    boolean   ->   boo = 'lea'      more than six letters: the first three, the next three
    vldb      ->   vl = 'db'        otherwise: the first half, the rest

Letters count without case and accents, and only a to z do (`qgrams_text.folded`).  A word of one
letter has no halves and is left out.  A text has an attribute once: the first word counts.
"""

from __future__ import annotations

import re

from matchwood.workload.qgrams_text import folded

_WORD = re.compile("[a-z]+")
_CONTEST = {
    "queries": re.compile(r"s \d+ \d+ \d+ \d+ (.*)"),
    "documents": re.compile(r"m \d+ \d+ (.*)"),
}
_ANY_CONTEST = re.compile(r"(s \d+ \d+ \d+ \d+|m \d+ \d+|r \d+ \d+|e \d+)( |$)")
_LONG = 6


def keyword_pair(word: str) -> tuple[str, str]:
    """Attribute and value of a word of two letters or more.

    >>> keyword_pair("boolean"), keyword_pair("vldb"), keyword_pair("event")
    (('boo', 'lea'), ('vl', 'db'), ('ev', 'ent'))
    """
    if len(word) > _LONG:
        return word[:3], word[3:6]
    half = len(word) // 2
    return word[:half], word[half:]


def text_pairs(text: str) -> dict[str, str]:
    """Attribute -> value: what a query asks for, and a document offers.

    >>> text_pairs("Boolean expressions at VLDB: a boolean boot")
    {'boo': 'lea', 'exp': 'res', 'a': 't', 'vl': 'db', 'bo': 'ot'}
    """
    found: dict[str, str] = {}
    for word in _WORD.findall(folded(text)):
        if len(word) > 1:
            name, value = keyword_pair(word)
            found.setdefault(name, value)
    return found


def texts_of(lines: list[str], kind: str) -> list[str]:
    """The "queries" or "documents" of a file: its lines, or those of a file of the contest.

    The SIGMOD 2013 contest has both in one file, one command a line: `s` id type distance words,
    the query; `m` id words, the document; `r` what it must match; `e` the end of a query.

    >>> lines = ["s 1 0 0 2 boolean vldb", "m 1 3 a vldb boolean", "r 1 1 1", "e 1"]
    >>> texts_of(lines, "queries"), texts_of(lines, "documents")
    (['boolean vldb'], ['a vldb boolean'])
    >>> texts_of(["boolean vldb"], "queries")
    ['boolean vldb']
    """
    first = next((line for line in lines if line.strip()), "")
    if not _ANY_CONTEST.match(first):
        return lines
    found = map(_CONTEST[kind].fullmatch, map(str.rstrip, lines))
    return [each[1] for each in found if each]
