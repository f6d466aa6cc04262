r"""RLIKE: regular expressions with the meaning of Java's, found in linear time.

Supported are the constructs whose meaning is certain: characters, `.`, `\d \w \s` and their
negations, escaped punctuation, classes with ranges, groups, `|`, `* + ? {m,n}` (also lazy: which
match is found does not matter), `^` and `$`, and `(?i)` at the very beginning.  Everything else is
refused by name: look-around, back references, `\b`, possessive quantifiers, other flags,
properties.

A pattern becomes a nondeterministic automaton; searching follows all its states at once, and sets
of states that were met are kept as states of a deterministic one.  So time grows with the length of
the string times the size of the pattern, whatever they are.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

MAX_STATES = 2_000
"""Most states of one pattern: `{1000}` of something long is refused."""
MAX_KEPT = 500
"""Most sets of states that are kept for one pattern."""

_LINE_ENDS = "\n\r\u0085\u2028\u2029"
_SPACES = " \t\n\x0b\f\r"
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "a": "\x07", "e": "\x1b"}

Test = Callable[[str], bool]


MAX_GROUPS = 50
"""Deepest nesting of groups."""


class RegexProblem(ValueError):
    """A pattern that is not supported."""


def _digit(c: str) -> bool:
    return "0" <= c <= "9"


def _word(c: str) -> bool:
    return c.isascii() and (c.isalnum() or c == "_")


def _space(c: str) -> bool:
    return c in _SPACES


_SETS: dict[str, Test] = {
    "d": _digit, "w": _word, "s": _space,
    "D": lambda c: not _digit(c), "W": lambda c: not _word(c), "S": lambda c: not _space(c),
}  # fmt: skip


class _Builder:
    """Reads a pattern into an automaton: per state what it reads, or where it goes without."""

    def __init__(self, pattern: str) -> None:
        self.is_folded = pattern.startswith("(?i)")
        self._text = pattern[4:] if self.is_folded else pattern
        self._at = 0
        self._depth = 0
        self.reads: list[tuple[Test, int] | None] = []
        self.goes: list[list[int]] = []
        self.asserts: dict[int, str] = {}
        self.runs = [""]
        """Characters outside of groups that follow each other in every match, if `is_sequence`."""
        self.is_sequence = True

    def state(self) -> int:
        if len(self.reads) >= MAX_STATES:
            raise RegexProblem("the pattern is too large: repeat less")
        self.reads.append(None)
        self.goes.append([])
        return len(self.reads) - 1

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def pattern(self) -> tuple[int, int]:
        first, last = self._choices()
        if self._at < len(self._text):
            raise RegexProblem(f"found {self._peek()} without its opening")
        return first, last

    def _choices(self) -> tuple[int, int]:
        first, last = self._sequence()
        while self._peek() == "|":
            self._at += 1
            self.is_sequence &= self._depth > 0
            start, end = self.state(), self.state()
            other, other_last = self._sequence()
            self.goes[start] += [first, other]
            self.goes[last].append(end)
            self.goes[other_last].append(end)
            first, last = start, end
        return first, last

    def _sequence(self) -> tuple[int, int]:
        first = last = self.state()
        while self._peek() not in ("", "|", ")"):
            begin = self._at
            start, end = self._atom()
            self._quantified = False
            start, end = self._repeated(begin, start, end)
            self.goes[last].append(start)
            last = end
            if self._depth == 0:
                self._note(self._text[begin : self._at])
        return first, last

    def _note(self, piece: str) -> None:
        """Note an atom with its quantifier: a plain character goes on a run, others end it."""
        if len(piece) == 1 and piece not in ".^$":
            self.runs[-1] += piece
        elif len(piece) == 2 and piece[0] == "\\" and piece[1] not in _SETS:
            self.runs[-1] += self._plain_escape(piece[1])
        else:
            self.runs.append("")

    def _repeated(self, begin: int, start: int, end: int) -> tuple[int, int]:
        mark = self._peek()
        if mark in ("*", "+", "?"):
            self._at += 1
            low, high = {"*": (0, -1), "+": (1, -1), "?": (0, 1)}[mark]
        elif mark == "{":
            low, high = self._bounds()
        else:
            return start, end
        source_end = self._at
        if self._peek() == "?":
            self._at += 1
        if self._peek() in ("+", "*", "?", "{"):
            raise RegexProblem("possessive and doubled quantifiers are not supported")
        after = self._at
        first = last = self.state()
        copies = max(low, high, 1)
        if copies > 1000:
            raise RegexProblem("the pattern repeats more than 1000 times")
        ends: list[int] = []
        for i in range(copies):
            if i:
                self._at = begin
                start, end = self._atom()
            if i >= low:
                ends.append(last)
            self.goes[last].append(start)
            last = end
            if high < 0 and i == copies - 1:
                loop = self.state()
                self.goes[last].append(loop)
                self.goes[loop].append(start)
                last = loop
        self._at = after if after >= source_end else source_end
        final = self.state()
        self.goes[last].append(final)
        if low == 0 and high == 0:
            return first, first
        for each in ends:
            self.goes[each].append(final)
        return first, final

    def _bounds(self) -> tuple[int, int]:
        end = self._text.find("}", self._at)
        body = self._text[self._at + 1 : end] if end > 0 else ""
        low, comma, high = body.partition(",")
        is_good = (
            low.isascii() and low.isdigit() and (not high or (high.isascii() and high.isdigit()))
        )
        if not is_good:
            raise RegexProblem("a { that begins no {m}, {m,} or {m,n}: write \\\\{")
        self._at = end + 1
        if not comma:
            return int(low), int(low)
        if high and int(high) < int(low):
            raise RegexProblem("a quantifier whose bounds are swapped")
        return int(low), int(high) if high else -1

    def _atom(self) -> tuple[int, int]:
        c = self._peek()
        self._at += 1
        if c == "(":
            return self._group()
        if c == "[":
            return self._reading(self._class())
        if c == ".":
            return self._reading(lambda c: c not in _LINE_ENDS)
        if c in ("^", "$"):
            start, end = self.state(), self.state()
            self.asserts[start] = c
            self.goes[start].append(end)
            return start, end
        if c == "\\":
            return self._reading(self._escaped())
        if c in ("*", "+", "?", "{", "}", "]"):
            raise RegexProblem(
                f"found {c} where a character is expected: write \\\\{c} for a plain one"
            )
        return self._reading(self._is(c))

    def _group(self) -> tuple[int, int]:
        self._depth += 1
        if self._depth > MAX_GROUPS:
            raise RegexProblem("groups nested too deeply")
        if self._peek() == "?":
            if self._text[self._at : self._at + 2] != "?:":
                raise RegexProblem("look-around, named groups and flags inside are not supported")
            self._at += 2
        first, last = self._choices()
        if self._peek() != ")":
            raise RegexProblem("found no ) for a (")
        self._at += 1
        self._depth -= 1
        return first, last

    def _reading(self, test: Test) -> tuple[int, int]:
        start, end = self.state(), self.state()
        self.reads[start] = (test, end)
        return start, end

    def _is(self, wanted: str) -> Test:
        if self.is_folded and wanted.isascii():
            both = wanted.lower() + wanted.upper()
            return lambda c: c in both
        return lambda c: c == wanted

    def _escaped(self) -> Test:
        c = self._peek()
        self._at += 1
        if c in _SETS and c:
            return _SETS[c]
        return self._is(self._plain_escape(c))

    def _plain_escape(self, c: str) -> str:
        if c in _CONTROLS and c:
            return _CONTROLS[c]
        if not c or c.isalnum() or not c.isascii():
            raise RegexProblem(f"the escape \\{c} is not supported")
        return c

    def _class(self) -> Test:
        is_negated = self._peek() == "^"
        self._at += is_negated
        tests: list[Test] = []
        is_first = True
        while True:
            c = self._peek()
            self._at += 1
            if not c:
                raise RegexProblem("found no ] for a [")
            if c == "]":
                if is_first:
                    raise RegexProblem("an empty class, or ] at its beginning: write \\\\]")
                break
            is_first = False
            if c == "[" or (c == "&" and self._peek() == "&"):
                raise RegexProblem("classes inside classes are not supported")
            if c == "\\":
                c = self._peek()
                self._at += 1
                if c in _SETS and c:
                    tests.append(_SETS[c])
                    if self._peek() == "-" and self._text[self._at + 1 : self._at + 2] != "]":
                        raise RegexProblem("a range that begins with a class")
                    continue
                c = self._plain_escape(c)
            if self._peek() == "-" and self._text[self._at + 1 : self._at + 2] not in ("]", ""):
                self._at += 1
                high = self._peek()
                self._at += 1
                if high == "\\":
                    high = self._plain_escape(self._peek())
                    self._at += 1
                elif high == "[":
                    raise RegexProblem("classes inside classes are not supported")
                if high < c:
                    raise RegexProblem("a range whose ends are swapped")
                tests.append(self._range(c, high))
            else:
                tests.append(self._is(c))
        if is_negated:
            return lambda c: not any(test(c) for test in tests)
        return lambda c: any(test(c) for test in tests)

    def _range(self, low: str, high: str) -> Test:
        if not self.is_folded:
            return lambda c: low <= c <= high
        return lambda c: (
            low <= c <= high
            or (c.isascii() and (low <= c.lower() <= high or low <= c.upper() <= high))
        )


class Regex:
    """A compiled pattern; `search` tells whether some part of a string fits.

    required  characters that follow each other in every string that fits; "" where none are known
    """

    def __init__(self, pattern: str) -> None:
        builder = _Builder(pattern)
        self._first, self._last = builder.pattern()
        self._reads, self._goes, self._asserts = builder.reads, builder.goes, builder.asserts
        is_known = builder.is_sequence and not builder.is_folded
        self.required = max(builder.runs, key=len) if is_known else ""
        self._kept: dict[tuple[frozenset[int], str], frozenset[int]] = {}

    def search(self, text: str) -> bool:
        """Whether the pattern is found somewhere."""
        n = len(text)
        ends = _dollar_places(text)
        states = self._closure([self._first], True, 0 in ends)
        for i, c in enumerate(text):
            if self._last in states:
                return True
            is_end = i + 1 in ends
            key = (states, c)
            following = None if is_end else self._kept.get(key)
            if following is None:
                moved = [read[1] for s in states if (read := self._reads[s]) and read[0](c)]
                following = self._closure([*moved, self._first], False, is_end)
                if not is_end:
                    if len(self._kept) >= MAX_KEPT:
                        self._kept.clear()
                    self._kept[key] = following
            states = following
        return self._last in states and n >= 0

    def _closure(self, states: list[int], is_start: bool, is_end: bool) -> frozenset[int]:
        found: set[int] = set()
        pending = list(states)
        while pending:
            state = pending.pop()
            if state in found:
                continue
            found.add(state)
            mark = self._asserts.get(state)
            if mark is None or (is_start if mark == "^" else is_end):
                pending += self._goes[state]
        return frozenset(found)


def _dollar_places(text: str) -> set[int]:
    """Where `$` holds: at the end, and before a line end that is the last thing."""
    n = len(text)
    places = {n}
    if text.endswith("\r\n"):
        places.add(n - 2)
    elif n and text[-1] in _LINE_ENDS:
        places.add(n - 1)
    return places


@lru_cache(maxsize=4096)
def regex(pattern: str) -> Regex:
    """A pattern, compiled once; RegexProblem for one that is not supported."""
    return Regex(pattern)


@lru_cache(maxsize=1 << 16)
def required(pattern: str) -> str:
    """What every string that fits a pattern contains; see `Regex`."""
    return regex(pattern).required
