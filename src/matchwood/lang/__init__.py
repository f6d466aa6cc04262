"""The language: text <-> tree.

    parse(text)      the tree of an expression, or a ParseError that points at the trouble
    to_text(tree)    its text again; str(tree) is the same
    attr(name)       the same trees, built in Python
    fn.lower(...)    a function of them
    ctx(name)        a value of the context, to compare with

docs/language.md describes the language; the nodes are in `matchwood.lang.nodes`.
"""

from matchwood.lang.builder import Attribute, attr, ctx, fn
from matchwood.lang.names import CONTEXT, is_context
from matchwood.lang.nodes import (
    COMPARISONS,
    FALSE,
    FLIPPED_OP,
    MAX_DEPTH,
    NEGATED_OP,
    TRUE,
    UNKNOWN,
    And,
    Between,
    Boolean,
    Comparison,
    Const,
    Expr,
    In,
    IsNull,
    Leaf,
    Like,
    Not,
    Or,
    Predicate,
    Relation,
    Value,
    Xnor,
    Xor,
    as_expression,
    children,
    predicates,
)
from matchwood.lang.parser import parse
from matchwood.lang.printer import Printer, to_text
from matchwood.lang.python_values import as_value
from matchwood.lang.tokens import MAX_TEXT

__all__ = [
    "COMPARISONS",
    "CONTEXT",
    "FALSE",
    "FLIPPED_OP",
    "MAX_DEPTH",
    "MAX_TEXT",
    "NEGATED_OP",
    "TRUE",
    "UNKNOWN",
    "And",
    "Attribute",
    "Between",
    "Boolean",
    "Comparison",
    "Const",
    "Expr",
    "In",
    "IsNull",
    "Leaf",
    "Like",
    "Not",
    "Or",
    "Predicate",
    "Printer",
    "Relation",
    "Value",
    "Xnor",
    "Xor",
    "as_expression",
    "as_value",
    "attr",
    "children",
    "ctx",
    "fn",
    "is_context",
    "parse",
    "predicates",
    "to_text",
]
