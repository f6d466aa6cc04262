"""The page on semantics names its tests, and they exist."""

from __future__ import annotations

import re
from pathlib import Path

FOLDER = Path(__file__).parent
PAGE = FOLDER.parents[1] / "docs" / "semantics.md"


def test_every_test_that_the_page_names_exists():
    text = PAGE.read_text(encoding="utf-8")
    defined = {
        (path.name, name)
        for path in FOLDER.glob("test_*.py")
        for name in re.findall(r"^def (test_\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    named = set(re.findall(r"(test_\w+\.py)::(test_\w+)", text))
    named |= {("test_differences.py", name) for name in re.findall(r"`(test_\w+)`", text)}
    assert len(named) > 40
    assert named - defined == set()


def test_every_difference_is_on_the_page():
    text = PAGE.read_text(encoding="utf-8")
    source = (FOLDER / "test_differences.py").read_text(encoding="utf-8")
    names = re.findall(r"^def (test_\w+)", source, re.MULTILINE)
    assert [name for name in names if f"`{name}`" not in text] == []
