"""Kernels of BEGen: derived expressions, and no two of them alike.

A derived expression is a function of (rules, row, attempt, base).  `survey` walks the rows in order
and gives each the first attempt that is long enough and that no earlier row has, so a row depends
on the rows before it and on nothing after it.  `write` draws surveyed rows into flat arrays.

Two expressions are alike when they accept the same integers: `x < 3` is `x <= 2`, and
`x IN (3, 4)` is `x BETWEEN 3 AND 4`.  So a signature sums hashes of the accepted runs of integers.
"""

import numpy as np

from matchwood.kernel.jit import kernel, part
from matchwood.workload.begen_draw_kernels import below, mix, stream_of, unit

EQ, NE, LT, LE, GE, GT, IN, NOT_IN, BETWEEN = range(9)

MAX_LIST = 6
"""Most values of IN and NOT IN (section 7.1)."""

_ODD, _ODD_ATTR = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD1342543DE82EF95)
_KEEP, _EQUAL, _OPERATOR, _SIZE, _ROUND, _VALUE = range(6)
_LOWEST, _HIGHEST = np.int64(-(2**62)), np.int64(2**62)


@part
def _run(low, high):
    """Hash of a run of integers, to be summed."""
    return mix(mix(np.uint64(low) * _ODD + np.uint64(1)) + np.uint64(high))


@part
def _draw_list(stream, i, n, cardinality, value, with_value, values, at):
    """n different values in order, with or without the base's: Floyd's sampling of the others."""
    drawn = np.int64(0)
    if with_value:
        values[at] = value
        drawn += 1
    others = n - drawn
    for j in range(cardinality - 1 - others, cardinality - 1):
        other = below(stream, i, _VALUE + n - drawn, j + 1)
        other += other >= value
        for k in range(drawn):
            if values[at + k] == other:
                other = j + (j >= value)
                break
        cell = drawn
        while cell > 0 and values[at + cell - 1] > other:
            values[at + cell] = values[at + cell - 1]
            cell -= 1
        values[at + cell] = other
        drawn += 1
    return drawn


@part
def _runs_of(values, at, n):
    """Sum of the hashes of the runs in a sorted list."""
    total, low = np.uint64(0), values[at]
    for k in range(1, n + 1):
        if k == n or values[at + k] != values[at + k - 1] + 1:
            total += _run(low, values[at + k - 1])
            if k < n:
                low = values[at + k]
    return total


@part
def _draw_range(rules, stream, i, value, values, at):
    """A range of the average width that contains the value."""
    width = rules.narrow + unit(stream, i, _SIZE) * (rules.wide - rules.narrow)
    n = min(np.int64(width + unit(stream, i, _ROUND)), rules.cardinality)
    first = max(value - n + 1, np.int64(0))
    last = min(value, rules.cardinality - n)
    values[at] = first + below(stream, i, _VALUE, last - first + 1)
    values[at + 1] = values[at] + n - 1


@part
def _transform(rules, stream, i, op, value, values, at):
    """One rule of Table 2(b): write the constants, return their number and the runs' hash."""
    end = rules.cardinality
    if op == EQ or op == NE:
        drawn = value
        if op == NE:
            drawn = below(stream, i, _VALUE, end - 1)
            drawn += drawn >= value
        values[at] = drawn
        return np.int64(1), _run(drawn, drawn)
    if op == LT or op == LE:
        last = value + below(stream, i, _VALUE, end - value)
        values[at] = last + (op == LT)
        return np.int64(1), _run(_LOWEST, last)
    if op == GT or op == GE:
        first = below(stream, i, _VALUE, value + 1)
        values[at] = first - (op == GT)
        return np.int64(1), _run(first, _HIGHEST)
    if op == BETWEEN:
        _draw_range(rules, stream, i, value, values, at)
        return np.int64(2), _run(values[at], values[at + 1])
    n = np.int64(2) + below(stream, i, _SIZE, MAX_LIST - 1)
    n = min(n, end - (op == NOT_IN))
    _draw_list(stream, i, n, end, value, op == IN, values, at)
    return n, _runs_of(values, at, n)


@part
def _operator(rules, stream, i):
    if unit(stream, i, _EQUAL) < rules.equality:
        return np.int64(EQ)
    return np.int64(rules.operators[below(stream, i, _OPERATOR, len(rules.operators))])


@part
def _derive(rules, row, attempt, bases, base, out, at, value_at):
    """Write one derived expression; return its predicates, its values and its signature."""
    stream = stream_of(rules.key, row, attempt)
    n, n_values, signature = np.int64(0), np.int64(0), np.uint64(0)
    first = bases.start[base]
    for i in range(bases.start[base + 1] - first):
        if unit(stream, i, _KEEP) >= rules.keep:
            continue
        attr, op = bases.attr[first + i], _operator(rules, stream, i)
        added, runs = _transform(
            rules, stream, i, op, bases.value[first + i], out.values, value_at + n_values
        )
        out.attr[at + n], out.op[at + n], out.n_values[at + n] = attr, op, added
        negated = op == NE or op == NOT_IN
        signature += mix(runs + np.uint64(2 * np.int64(attr) + negated) * _ODD_ATTR)
        n += 1
        n_values += added
    return n, n_values, signature | np.uint64(1)


@part
def _is_new(seen, signature):
    """Put a signature into the open-addressed set unless it is there; 0 marks a free cell."""
    mask = np.uint64(len(seen) - 1)
    cell = mix(signature) & mask
    while seen[cell] != np.uint64(0):
        if seen[cell] == signature:
            return False
        cell = (cell + np.uint64(1)) & mask
    seen[cell] = signature
    return True


@kernel
def rehash(old, seen):
    """Move all signatures into a larger set."""
    for signature in old:
        if signature != np.uint64(0):
            _is_new(seen, signature)


@kernel
def survey(rules, bases, base_of, first, out, seen, found, most):
    """Attempt, predicates and values of rows first, first + 1, ...; the row that did not fit."""
    for k in range(len(base_of)):
        attempt = np.int64(0)
        while True:
            n, n_values, signature = _derive(
                rules, first + k, attempt, bases, base_of[k], out, np.int64(0), np.int64(0)
            )
            if n >= rules.fewest and _is_new(seen, signature):
                break
            attempt += 1
            if attempt == most:
                return k
        found[k, 0], found[k, 1], found[k, 2] = attempt, n, n_values
    return len(base_of)


@kernel
def write(rules, bases, base_of, first, attempt, row_start, value_start, out):
    """Draw rows first, first + 1, ... again, each to its position."""
    for k in range(len(base_of)):
        _derive(rules, first + k, attempt[k], bases, base_of[k], out, row_start[k], value_start[k])
