"""Plain words: what identifiers, docstrings, comments, messages and pages may not say."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from parsed import tree_of

pytestmark = pytest.mark.xdist_group("layers")  # with tests/test_layers.py: one process parses

ROOT = Path(__file__).parents[1]
SRC = ROOT / "src"
VAGUE = {"told", "taken", "own", "beside", "place", "moment", "partner"}


def identifiers(tree: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Names of variables, arguments, attributes, functions and classes, with their nodes."""
    for node in ast.walk(tree):
        for field in ("id", "arg", "attr", "name"):
            value = getattr(node, field, None)
            if isinstance(value, str):
                yield value.strip("_"), node


def vague_names(tree: ast.Module) -> list[str]:
    found = identifiers(tree)
    return [f"line {getattr(node, 'lineno', '?')}: {name}" for name, node in found if name in VAGUE]


@pytest.mark.parametrize("folder", sorted(each.name for each in (SRC / "matchwood").iterdir()))
def test_no_identifier_is_a_word_that_says_nothing(folder: str) -> None:
    path = SRC / "matchwood" / folder
    files = [path] if path.suffix == ".py" else sorted(path.rglob("*.py"))
    found = {str(each.relative_to(SRC)): vague_names(tree_of(each)) for each in files}
    assert {name: names for name, names in found.items() if names} == {}


def test_vague_names_are_found() -> None:
    tree = ast.parse("def _place(own, *, told=1):\n    moment = own.beside\n")
    assert len(vague_names(tree)) == 6


FIGURATIVE = re.compile(
    r"\b(told|partners|(no|some|any|every)body|whom|gives? way|speaks? of|the moment of)\b",
    re.IGNORECASE,
)
"""Actors for processes and values, and words that have a plain counterpart."""


def prose(source: str) -> Iterator[tuple[int, str]]:
    """Lines of comments and strings, with their numbers."""
    inside = {tokenize.COMMENT, tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", -1)}
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type in inside:
            yield from enumerate(token.string.splitlines(), token.start[0])


def figures_of_speech(path: Path) -> list[str]:
    text = path.read_text(encoding="utf-8")
    if not FIGURATIVE.search(text):  # tokens are made of few files
        return []
    lines = prose(text) if path.suffix == ".py" else enumerate(text.splitlines(), 1)
    return [
        f"{path.relative_to(ROOT)}:{n}: {found[0]}"
        for n, line in lines
        for found in FIGURATIVE.finditer(line)
    ]


def test_texts_name_mechanisms_and_no_actors() -> None:
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/*.md")]
    paths = [*SRC.glob("matchwood/**/*.py"), *pages]
    assert [found for path in sorted(paths) for found in figures_of_speech(path)] == []
