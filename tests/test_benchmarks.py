"""The scripts of benchmarks/ import names that exist; running them all would take hours."""

from __future__ import annotations

import ast
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

SCRIPTS = sorted((Path(__file__).parents[1] / "benchmarks").glob("*.py"))


def missing(source: str) -> list[str]:
    """Names of the package that a script imports, anywhere in it, and that are not there."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("matchwood"):
            module = import_module(node.module)
            for name in [each.name for each in node.names]:
                if not hasattr(module, name) and find_spec(f"{node.module}.{name}") is None:
                    found.append(f"{node.module}.{name}")
    return found


def test_a_name_that_has_moved_is_found() -> None:
    source = "from matchwood.encode import columns\nfrom matchwood.encode.arrow import columns"
    assert missing(source) == ["matchwood.encode.columns"]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_a_benchmark_imports_what_exists(script: Path) -> None:
    assert missing(script.read_text()) == []
