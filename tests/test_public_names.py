"""What `import matchwood` gives: the names of the design, and none by accident."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

import matchwood as mw
import matchwood.errors

NAMES = {
    "Matcher",
    "Matches",
    "BatchReport",
    "Explanation",
    "Flips",
    "ImportReport",
    "import_rules",
    "Schema",
    "Expr",
    "attr",
    "fn",
    "ctx",
    "parse",
    "__version__",
}
ERRORS = {
    "MatchwoodError",
    "ParseError",
    "SchemaError",
    "EventError",
    "ExpansionError",
    "IndexBuildError",
    "FormatError",
    "StorageError",
    "SubscriptionError",
}
MATCHER = {
    "add",
    "add_many",
    "replace",
    "remove",
    "refused",
    "remove_many",
    "match",
    "match_json",
    "match_many",
    "match_many_json",
    "explain",
    "validate",
    "stats",
    "draw",
    "save",
    "load",
    "expression",
    "schema",
    "set_context",
    "set_context_many",
    "remove_context",
    "context",
    "batch",
    "clear",
    "compact",
    "checkpoint",
    "flush",
    "close",
    "open",
    "refresh",
    "why_not",
    "near",
    "plan",
    "overlaps",
    "subsumes",
    "duplicates",
    "verify",
    "exists",
    "ids",
    "items",
    "match_count",
    "metrics",
    "replace_many",
    "sweep",
    "to_arrow",
}
COLUMNS = {"add_chunks", "encode", "find", "arrow_ids", "renumber", "context_ids", "hold_strings"}
COLUMNS |= {"priorities", "own_types", "text_types", "contexts"}
"""Verbs for pipelines, which have columns at both ends and want no Python object a row."""


def test_exported_names_are_those_of_the_design():
    assert set(dir(mw)) == NAMES | ERRORS
    assert set(mw.__all__) == (NAMES | ERRORS) - {"__version__"}


@pytest.mark.parametrize("name", sorted(NAMES | ERRORS))
def test_every_name_can_be_imported(name):
    assert getattr(mw, name) is not None
    assert getattr(getattr(mw, name), "__name__", name).lower() == name.lower()


def test_other_names_are_refused_as_python_does():
    with pytest.raises(AttributeError, match="has no attribute 'match'"):
        _ = mw.match
    assert not hasattr(mw, "Ctx")


def test_a_matcher_has_the_verbs_of_the_design():
    assert {name for name in dir(mw.Matcher) if not name.startswith("_")} == MATCHER | COLUMNS


@pytest.mark.parametrize("name", sorted(ERRORS))
def test_every_error_is_a_matchwood_error(name):
    error = getattr(mw, name)
    assert issubclass(error, mw.MatchwoodError)
    assert issubclass(error, Exception)
    assert error.__doc__


def test_every_error_of_the_tree_is_exported():
    def below(error: type) -> set[str]:
        return {error.__name__}.union(*(below(each) for each in error.__subclasses__()))

    ours = below(mw.MatchwoodError) - {"PositionedError"}
    assert {name for name in ours if hasattr(matchwood.errors, name)} == ERRORS
    assert all(name in matchwood.errors.__doc__ for name in ERRORS)


@pytest.mark.parametrize("name", sorted(ERRORS))
def test_errors_survive_pickling(name):
    error = getattr(mw, name)("a message")
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert str(copy) == str(error) == "a message"


def test_an_error_with_a_place_keeps_it_when_pickled():
    with pytest.raises(mw.ParseError) as caught:
        mw.parse("a = 1 AND\n b = = 2")
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (copy.line, copy.column, str(copy)) == (2, 6, str(caught.value))


@pytest.mark.slow
def test_star_import_gives_the_same_names():
    code = (
        "from matchwood import *; import matchwood; "
        "print(all(name in globals() for name in matchwood.__all__))"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(mw.__file__).parents[1])}
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    assert answer.stdout.strip() == "True"
