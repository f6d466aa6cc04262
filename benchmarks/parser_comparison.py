"""How many texts per second our parser, sqlglot and lark turn into trees, on one core.

    python benchmarks/parser_comparison.py [--texts 2000] [--repeat 5]

sqlglot parses to its own tree, as the condition of a WHERE.  lark runs LALR with the contextual
lexer over a grammar of the same language; once to its own tree, once to our nodes through a
transformer that runs while parsing.  Every parser sees the same texts; the best of the repeats
counts, and the trees of lark are checked against ours first.
"""

from __future__ import annotations

import argparse
import gc
import random
import sys
import time
from collections.abc import Callable
from typing import Any

import lark
import sqlglot

from matchwood.lang import And, Between, Comparison, Expr, In, Not, Or, parse

TYPICAL = (
    "genre = 'classics' AND era IN ('1920s','1940s') AND price BETWEEN 20 AND 40 "
    "AND ranking < 5 AND format NOT IN ('paperback')"
)

GRAMMAR = r"""
    ?start: either
    ?either: all ("OR"i all)*            -> any_of
    ?all: unary ("AND"i unary)*          -> all_of
    ?unary: "NOT"i unary                 -> negation
          | "(" either ")"
          | predicate
    ?predicate: NAME OP literal                           -> comparison
          | NAME "BETWEEN"i literal "AND"i literal        -> between
          | NAME "IN"i "(" literal ("," literal)* ")"     -> isin
          | NAME "NOT"i "IN"i "(" literal ("," literal)* ")" -> not_in
          | NAME                                          -> bare
    ?literal: INT -> integer | FLOAT -> fraction | STRING -> string
    OP: "<=" | ">=" | "<>" | "=" | "<" | ">"
    NAME: /[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*/
    INT: /-?[0-9]+/
    FLOAT: /-?[0-9]+\.[0-9]+/
    STRING: /'[^'\\]*'/
    %ignore /[ \t\r\n]+/
"""


class ToNodes(lark.Transformer[Any, Expr]):
    """lark's rules to our nodes."""

    def any_of(self, nodes: list[Expr]) -> Expr:
        return nodes[0] if len(nodes) == 1 else Or(tuple(nodes))

    def all_of(self, nodes: list[Expr]) -> Expr:
        return nodes[0] if len(nodes) == 1 else And(tuple(nodes))

    def negation(self, nodes: list[Expr]) -> Expr:
        return Not(nodes[0])

    def comparison(self, parts: list[Any]) -> Expr:
        return Comparison(str(parts[0]), str(parts[1]), parts[2])

    def between(self, parts: list[Any]) -> Expr:
        return Between(str(parts[0]), parts[1], parts[2])

    def isin(self, parts: list[Any]) -> Expr:
        return In(str(parts[0]), tuple(parts[1:]))

    def not_in(self, parts: list[Any]) -> Expr:
        return In(str(parts[0]), tuple(parts[1:]), negated=True)

    def bare(self, parts: list[Any]) -> Expr:
        return Comparison(str(parts[0]), "=", True)

    def integer(self, parts: list[Any]) -> int:
        return int(parts[0])

    def fraction(self, parts: list[Any]) -> float:
        return float(parts[0])

    def string(self, parts: list[Any]) -> str:
        return str(parts[0][1:-1])


def texts(n: int, seed: int = 1) -> list[str]:
    """Conjunctions of five predicates: the typical text and random ones like it."""
    rng = random.Random(seed)
    forms: list[Callable[[str], str]] = [
        lambda name: f"{name} = 'value {rng.randrange(1000)}'",
        lambda name: f"{name} IN ('{rng.randrange(1000)}s','{rng.randrange(1000)}s')",
        lambda name: f"{name} BETWEEN {rng.randrange(50)} AND {rng.randrange(50, 100)}",
        lambda name: f"{name} {rng.choice(['<', '<=', '>', '>='])} {rng.randrange(1000)}",
        lambda name: f"{name} NOT IN ('value {rng.randrange(1000)}')",
    ]
    made = [TYPICAL]
    while len(made) < n:
        names = rng.sample([f"attribute_{i}" for i in range(40)], 5)
        made.append(" AND ".join(rng.choice(forms)(name) for name in names))
    return made


def per_second(parse_one: Callable[[str], object], sample: list[str], repeat: int) -> float:
    """Texts per second, best of the repeats."""
    best = float("inf")
    for _ in range(repeat):
        gc.collect()
        start = time.perf_counter()
        for text in sample:
            parse_one(text)
        best = min(best, time.perf_counter() - start)
    return len(sample) / best


def main() -> None:
    options = argparse.ArgumentParser(description="texts per second of three parsers")
    options.add_argument("--texts", type=int, default=2000)
    options.add_argument("--repeat", type=int, default=5)
    arguments = options.parse_args()
    sample = texts(arguments.texts)
    trees = lark.Lark(GRAMMAR, parser="lalr", lexer="contextual")
    nodes = lark.Lark(GRAMMAR, parser="lalr", lexer="contextual", transformer=ToNodes())
    if any(nodes.parse(text) != parse(text) for text in sample):
        sys.exit("lark's trees differ from ours: the comparison would be unfair")
    rows: list[tuple[str, Callable[[str], object], list[str]]] = [
        ("matchwood, the typical text", parse, [TYPICAL] * len(sample)),
        ("matchwood", parse, sample),
        ("lark, own tree", trees.parse, sample),
        ("lark, our nodes", nodes.parse, sample),
        ("sqlglot, own tree", lambda text: sqlglot.parse_one(text, read="spark"), sample),
    ]
    versions = f"lark {lark.__version__}, sqlglot {sqlglot.__version__}"
    lines = [f"Python {sys.version.split()[0]}, {versions}"]
    for label, parse_one, given in rows:
        rate = per_second(parse_one, given, arguments.repeat)
        lines.append(f"{label:28s} {rate:9,.0f} texts/s {1e6 / rate:8.1f} µs per text")
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
