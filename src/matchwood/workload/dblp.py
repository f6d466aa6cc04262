"""DBLP: authors and titles from its XML file, as it is read.

The file has gigabytes, so it goes through the parser in pieces and no tree is built: memory stays
the same however long it is.  Its document type names entities such as `&uuml;` in a separate file;
they are HTML's, so they are looked up there, and nothing is fetched.
"""

from __future__ import annotations

import gzip
import html
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast
from xml.parsers import expat

from matchwood.errors import FormatError

ELEMENTS = {"authors": "author", "titles": "title"}
"""What can be read, and the element it stands in."""

PIECE = 1 << 18

_RECORD_DEPTH = 2
_PAGES = "www"
"""Records of people's home pages, all of which are titled so."""


def read_dblp(path: str | Path, kind: str) -> Iterator[str]:
    """The authors or titles of a `.xml` or `.xml.gz` file, in its order, repeated as they are.

    Mark-up inside a title (`<i>`, `<sub>`) is left out and its text kept.
    """
    if kind not in ELEMENTS:
        raise FormatError(f"expected one of {', '.join(ELEMENTS)} to read, found {kind!r}")
    reader = _Reader(ELEMENTS[kind])
    with _open(Path(path)) as file:
        try:
            while piece := file.read(PIECE):
                reader.feed(piece, last=False)
                yield from reader.take()
            reader.feed(b"", last=True)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise FormatError(f"{path}: expected a whole gzip file, found: {error}") from error
        except expat.ExpatError as error:
            raise FormatError(f"{path}: expected DBLP's XML, found: {error}") from error
    yield from reader.take()


def _open(path: Path) -> BinaryIO:
    if path.suffix == ".gz":
        return cast(BinaryIO, gzip.open(path, "rb"))
    return path.open("rb")


class _Reader:
    """Collects the text of one kind of element."""

    def __init__(self, element: str) -> None:
        self._element = element
        self._depth = 0
        self._skips = False
        self._text: list[str] | None = None
        self._found: list[str] = []
        self._parser = parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.UseForeignDTD(True)  # unknown entities are then reported instead of refused
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._data
        parser.SkippedEntityHandler = self._entity

    def feed(self, piece: bytes, last: bool) -> None:
        self._parser.Parse(piece, last)

    def take(self) -> list[str]:
        found, self._found = self._found, []
        return found

    def _start(self, name: str, _attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth == _RECORD_DEPTH:
            self._skips = name == _PAGES and self._element == "title"
        elif name == self._element and not self._skips:
            self._text = []

    def _end(self, name: str) -> None:
        self._depth -= 1
        if self._text is not None and name == self._element:
            text = " ".join("".join(self._text).split())
            self._text = None
            if text:
                self._found.append(text)

    def _data(self, text: str) -> None:
        if self._text is not None:
            self._text.append(text)

    def _entity(self, name: str, is_parameter: bool) -> None:
        if self._text is not None and not is_parameter:
            self._text.append(html.unescape(f"&{name};"))
