"""The table of constructs in docs/language.md is what the language takes."""

from __future__ import annotations

from pathlib import Path

import pytest

from matchwood.errors import ParseError
from matchwood.lang import parse
from matchwood.lang.functions.reference import BEGIN, CONSTRUCTS, END, table

PAGE = Path(__file__).parents[2] / "docs" / "language.md"


def test_the_page_holds_the_table_of_the_registry():
    page = PAGE.read_text()
    assert page[page.index(BEGIN) + len(BEGIN) : page.index(END)].strip() == table()


@pytest.mark.parametrize(("answer", "example"), [each[1:3] for each in CONSTRUCTS])
def test_an_example_is_taken_or_refused_as_the_table_says(answer, example):
    if answer == "no":
        with pytest.raises(ParseError):
            parse(example)
    else:
        assert parse(str(parse(example))) == parse(example)
