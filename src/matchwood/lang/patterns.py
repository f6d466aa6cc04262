r"""LIKE patterns in one form: % and _ are wild, a backslash makes the next %, _ or \ plain."""

from __future__ import annotations

import re

from matchwood.lang.literals import LiteralError

_SPECIAL = {"%": r"\%", "_": r"\_", "\\": r"\\"}


def canonical(pattern: str, escape: str = "\\") -> str:
    """A pattern written with any escape character, rewritten to the backslash."""
    if len(escape) != 1:
        raise LiteralError(f"expected one character after ESCAPE, found {escape[:40]!r}")
    if escape not in pattern and "\\" not in pattern:
        return pattern
    out = []
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            following = next(characters, "")
            if following not in ("%", "_", escape) or not following:
                raise LiteralError(
                    f"expected %, _ or {escape} after {escape} in a pattern, found "
                    f"{following or 'the end of the pattern'!r}: write {_written(escape)} for a "
                    f"plain {escape}"
                )
            out.append(_SPECIAL.get(following, following))
        else:
            out.append(r"\\" if character == "\\" else character)
    return "".join(out)


def _written(escape: str) -> str:
    return r"'\\\\'" if escape == "\\" else escape * 2


def like_text(text: str) -> str:
    """A text as a part of a pattern, without wildcards."""
    return "".join([_SPECIAL.get(character, character) for character in text])


def starts_with(prefix: str) -> str:
    """The pattern of all strings that start with this one."""
    return like_text(prefix) + "%"


def compile_pattern(pattern: str) -> re.Pattern[str]:
    """A regular expression that decides in linear time per segment, whatever the pattern.

    Between two `%`, taking the leftmost position where a segment fits is always right, so each
    segment is an atomic group: hostile patterns such as '%a%a%a%a%b' cannot backtrack.
    """
    segments: list[str] = [""]
    for text, wild in pieces(pattern):
        if wild and text == "%":
            segments.append("")
        else:
            segments[-1] += "." if wild else re.escape(text)
    if len(segments) == 1:
        return re.compile(segments[0], re.DOTALL)
    first, *middle, last = segments
    body = "".join([f"(?>.*?{segment})" for segment in middle if segment])
    return re.compile(f"{first}{body}.*{last}", re.DOTALL)


def pieces(pattern: str) -> list[tuple[str, bool]]:
    """(character, is a wildcard) from left to right, escapes resolved."""
    found = []
    characters = iter(pattern)
    for character in characters:
        if character == "\\":
            found.append((next(characters, "\\"), False))
        else:
            found.append((character, character in "%_"))
    return found
