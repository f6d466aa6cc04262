"""Comments and pages name modules that exist: `engine.stores.savepoint`, `index.core.static`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from parsed import tree_of

pytestmark = pytest.mark.xdist_group("layers")  # with tests/test_layers.py: one process parses

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "matchwood"
LAYERS = "|".join(
    sorted(each.name for each in PACKAGE.iterdir() if (each / "__init__.py").exists())
)
NAME = re.compile(rf"`(?:matchwood\.)?((?:{LAYERS})(?:\.\w+)+)`")

NOT_OURS = (
    "index.match", "index.py", "spark.default.", "spark.executor.", "spark.python.", "spark.read.",
    "spark.sql.",
)  # fmt: skip
"""A method of users' variables, a file, and names of Spark."""


def module_of(parts: list[str]) -> Path | None:
    path = PACKAGE.joinpath(*parts)
    files = (path.with_suffix(".py"), path / "__init__.py")
    return next((file for file in files if file.exists()), None)


def exists(name: str) -> bool:
    """Whether it is a module, or something that a module defines or imports."""
    *parents, last = name.split(".")
    if module_of([*parents, last]):
        return True
    module = module_of(parents)
    if module is None:
        return False
    return any(
        last in (getattr(node, "name", None), getattr(node, "id", None), getattr(node, "arg", None))
        for node in ast.walk(tree_of(module))
    )


def files() -> Iterator[Path]:
    yield from PACKAGE.rglob("*.py")
    yield from (ROOT / "docs").glob("*.md")
    yield from (ROOT / "README.md", ROOT / "CONTRIBUTING.md")


def test_a_module_that_has_moved_is_found() -> None:
    assert exists("index.core.static")
    assert exists("engine.stores.store.Store")
    assert not exists("engine.savepoint")


def test_modules_that_are_named_exist() -> None:
    wrong = [
        f"{file.relative_to(ROOT)}: {name}"
        for file in files()
        for name in NAME.findall(file.read_text(encoding="utf-8"))
        if not exists(name) and not name.startswith(NOT_OURS)
    ]
    assert wrong == []
