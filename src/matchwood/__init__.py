"""Matchwood keeps millions of Boolean expressions and tells, for every event, which of them hold.

    import matchwood as mw

    m = mw.Matcher()
    m.add("s1", "genre = 'classics' AND price BETWEEN 20 AND 40")
    m.match({"genre": "classics", "price": 26})          # -> ["s1"]

Names are imported when they are first used, so `import matchwood` is quick and needs neither Spark
nor a compiler.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matchwood.encode.schema import Schema
    from matchwood.engine.answers.explain import Explanation
    from matchwood.engine.input.loading import BatchReport
    from matchwood.engine.matcher import Matcher
    from matchwood.engine.matches import Matches
    from matchwood.engine.stores.flips import Flips
    from matchwood.errors import (
        EventError,
        ExpansionError,
        FormatError,
        IndexBuildError,
        MatchwoodError,
        ParseError,
        SchemaError,
        StorageError,
        SubscriptionError,
    )
    from matchwood.lang import Expr, attr, ctx, fn, parse
    from matchwood.rules import ImportReport, import_rules

import_module("matchwood.context")  # so that the registry knows the indexes of that layer

_HOME = {
    "BatchReport": "engine.input.loading",
    "Explanation": "engine.answers.explain",
    "Flips": "engine.stores.flips",
    "ImportReport": "rules",
    "Matcher": "engine.matcher",
    "Matches": "engine.matches",
    "Schema": "encode.schema",
    "Expr": "lang",
    "attr": "lang",
    "fn": "lang",
    "ctx": "lang",
    "import_rules": "rules",
    "parse": "lang",
    "EventError": "errors",
    "ExpansionError": "errors",
    "FormatError": "errors",
    "IndexBuildError": "errors",
    "MatchwoodError": "errors",
    "ParseError": "errors",
    "SchemaError": "errors",
    "StorageError": "errors",
    "SubscriptionError": "errors",
}

__all__ = [
    "BatchReport",
    "EventError",
    "ExpansionError",
    "Explanation",
    "Expr",
    "Flips",
    "FormatError",
    "ImportReport",
    "IndexBuildError",
    "Matcher",
    "Matches",
    "MatchwoodError",
    "ParseError",
    "Schema",
    "SchemaError",
    "StorageError",
    "SubscriptionError",
    "attr",
    "ctx",
    "fn",
    "import_rules",
    "parse",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("matchwood")
    if name not in _HOME:
        raise AttributeError(f"module 'matchwood' has no attribute {name!r}")
    value = getattr(import_module(f"matchwood.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
