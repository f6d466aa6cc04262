"""What is in the registry is documented, and what is documented is in the registry."""

from __future__ import annotations

import re
from pathlib import Path

from matchwood.index.core.registry import REGISTRY, find_index

PAGE = Path(__file__).parents[2] / "docs" / "indexes.md"


def test_every_index_has_its_name_and_its_line_in_the_page():
    rows = re.findall(r"^\| `(\w+)` \|", PAGE.read_text(), re.MULTILINE)
    assert sorted(rows) == sorted(REGISTRY)


def test_an_index_is_called_what_it_is_registered_as():
    assert [find_index(name).name for name in REGISTRY] == list(REGISTRY)
