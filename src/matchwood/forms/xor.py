"""Chains of XOR and XNOR are one parity.

    a XOR b XOR c        TRUE for an odd number of TRUEs
    a XNOR b             NOT (a XOR b): the parity flips
    (a XOR b) XNOR c     NOT (a XOR b XOR c)

Both are unknown as soon as one operand is, so the order of a chain does not matter and it may be
split in the middle.  Expanding left to right would double the size at every step; halving costs
n*n.
"""

from __future__ import annotations

from matchwood.lang.nodes import Expr, Not, Xnor, Xor


def parity_chain(expr: Expr) -> tuple[list[Expr], bool]:
    """The operands of a chain, and whether an odd (True) or even number of TRUEs makes it TRUE.

    >>> from matchwood.lang import parse
    >>> operands, odd = parity_chain(parse("a XOR b XNOR c"))
    >>> [str(each) for each in operands], odd
    (['a', 'b', 'c'], False)
    """
    operands: list[Expr] = []
    odd = True
    pending = [expr]
    while pending:
        each = pending.pop()
        if isinstance(each, (Xor, Xnor)):
            odd ^= isinstance(each, Xnor)
            pending += (each.right, each.left)
        elif isinstance(each, Not):
            odd = not odd
            pending.append(each.operand)
        else:
            operands.append(each)
    return operands, odd
