"""Names say what they hold: words that docs/words.md replaces are no identifiers."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SRC = Path(__file__).parents[1] / "src"
VAGUE = {"told", "taken", "own", "beside", "place", "moment", "partner"}


def identifiers(tree: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Names of variables, arguments, attributes, functions and classes, with their nodes."""
    for node in ast.walk(tree):
        for field in ("id", "arg", "attr", "name"):
            value = getattr(node, field, None)
            if isinstance(value, str):
                yield value.strip("_"), node


def vague_names(source: str) -> list[str]:
    found = identifiers(ast.parse(source))
    return [f"line {getattr(node, 'lineno', '?')}: {name}" for name, node in found if name in VAGUE]


@pytest.mark.parametrize("folder", sorted(each.name for each in (SRC / "matchwood").iterdir()))
def test_no_identifier_is_a_word_that_says_nothing(folder: str) -> None:
    path = SRC / "matchwood" / folder
    files = [path] if path.suffix == ".py" else sorted(path.rglob("*.py"))
    found = {str(each.relative_to(SRC)): vague_names(each.read_text()) for each in files}
    assert {name: names for name, names in found.items() if names} == {}


def test_vague_names_are_found() -> None:
    assert len(vague_names("def _place(own, *, told=1):\n    moment = own.beside\n")) == 6
