"""What calls are given: expressions as texts, trees, or read before; and paths."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

from matchwood.encode.leaves import LeafBatch
from matchwood.encode.texts.quick import write_text
from matchwood.errors import ParseError, SchemaError, StorageError
from matchwood.lang.nodes import Boolean, Expr
from matchwood.lang.parser import parse


class Parsed(NamedTuple):
    """An expression that was read once, for several stores."""

    text: str
    """What is kept to show it again, and to build a store again."""
    batch: LeafBatch
    has_position: bool
    """Whether positions in the batch are positions in the text."""


Given = str | Boolean | Parsed
"""An expression as a change gets it."""


def parsed(expr: Given) -> Parsed:
    """Read an expression; raises ParseError."""
    return expr if isinstance(expr, Parsed) else Parsed(
        text_of(expr), single(expr), isinstance(expr, str)
    )  # fmt: skip


def tree(expr: Given) -> Expr:
    """The tree of a text, an expression or an attribute."""
    if isinstance(expr, Parsed):
        return parse(expr.text, limit=len(expr.text))
    return expr.expression() if isinstance(expr, Boolean) else parse(expr)


def single(expr: Given) -> LeafBatch:
    """A batch of one expression."""
    if isinstance(expr, Parsed):
        return expr.batch
    batch = LeafBatch()
    if not isinstance(expr, str) or not write_text(batch, expr):
        batch.add(tree(expr))
    return batch


def text_of(expr: Given) -> str:
    """What is kept to show it again, and to build the store again."""
    if isinstance(expr, Parsed):
        return expr.text
    return str(expr.expression()) if isinstance(expr, Boolean) else expr


def read_path(path: Any) -> Path:
    """A path as it was given; StorageError for what is none."""
    text = os.fspath(path) if isinstance(path, os.PathLike) else path
    if not isinstance(text, str):
        raise StorageError(
            f"expected a path, a str or an os.PathLike, found {type(path).__name__} {path!r}"
        )
    return Path(text)


def placed(error: SchemaError, expr: Given | None) -> SchemaError | ParseError:
    """The error with its position in the text; trees that were built in Python have none."""
    if isinstance(expr, Parsed) and expr.has_position:
        expr = expr.text
    return error.at(expr) if isinstance(expr, str) else error  # type: ignore[return-value]
