"""The language: text <-> tree.

    parse(text)      the tree of an expression, or a ParseError that points at the trouble
    to_text(tree)    its text again; str(tree) is the same
    attr(name)       the same trees, built in Python

docs/language.md describes the language; the nodes are in `matchwood.lang.nodes`.
"""

from matchwood.lang.builder import Attribute, as_value, attr
from matchwood.lang.names import RESERVED_NAMESPACE
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
    Value,
    Xnor,
    Xor,
    as_expression,
    children,
    predicates,
)
from matchwood.lang.parser import parse
from matchwood.lang.printer import Printer, to_text
from matchwood.lang.tokens import MAX_TEXT

__all__ = [
    "COMPARISONS",
    "FALSE",
    "FLIPPED_OP",
    "MAX_DEPTH",
    "MAX_TEXT",
    "NEGATED_OP",
    "RESERVED_NAMESPACE",
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
    "Value",
    "Xnor",
    "Xor",
    "as_expression",
    "as_value",
    "attr",
    "children",
    "parse",
    "predicates",
    "to_text",
]
