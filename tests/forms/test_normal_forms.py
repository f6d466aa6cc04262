"""Normal forms are TRUE for the events that make their source TRUE, in three-valued logic."""

from __future__ import annotations

import pickle
from functools import reduce
from random import Random

import pytest
from hypothesis import given

from forms.truth import LETTERS, is_true_where, leaves, nodes, tree
from matchwood.errors import ExpansionError, MatchwoodError
from matchwood.forms.cost import MAX_XOR_LEAVES, dnf_terms, nnf_leaves
from matchwood.forms.dnf import dnf
from matchwood.forms.nnf import nnf
from matchwood.forms.simplify import simplify
from matchwood.lang import parse
from matchwood.lang.nodes import (
    FALSE,
    MAX_DEPTH,
    TRUE,
    And,
    Comparison,
    Const,
    Expr,
    In,
    Not,
    Or,
    Predicate,
    Xnor,
    Xor,
)
from naive import matches
from strategies import events, seeds, workloads


def drawn(seed: int, n: int = 6) -> Expr:
    rng = Random(seed)
    return tree(rng, rng.randint(1, n))


def bits(n: int) -> list[Expr]:
    return [Comparison(f"x{i}", "=", True) for i in range(n)]


# ── negation normal form ────────────────────────────────────────────────────────────────────────


@given(seed=seeds())
def test_nnf_is_true_where_its_source_is(seed):
    source = drawn(seed)
    is_true_where(nnf(source), source)


@given(workload=workloads(n_expressions=6, n_events=8))
def test_nnf_of_every_operator_and_type_is_true_where_its_source_is(workload):
    _, subscriptions, found = workload
    for _, source in subscriptions:
        form = nnf(source)
        assert [matches(form, each) for each in found] == [matches(source, e) for e in found]


@given(seed=seeds())
def test_nnf_holds_and_or_constants_and_predicates_alone(seed):
    for node in nodes(nnf(drawn(seed))):
        assert isinstance(node, (And, Or, Const, Predicate))
        assert not (isinstance(node, In) and None in node.values)


@given(seed=seeds())
def test_nnf_of_an_nnf_is_itself(seed):
    form = nnf(drawn(seed))
    assert nnf(form) == form


@given(seed=seeds())
def test_negating_twice_changes_no_normal_form(seed):
    source = drawn(seed)
    assert nnf(Not(Not(source))) == nnf(source)


@given(seed=seeds())
def test_the_estimate_of_leaves_is_exact(seed):
    source = drawn(seed)
    assert leaves(nnf(source)) == nnf_leaves(source)


@pytest.mark.parametrize("kind", [Xor, Xnor])
@pytest.mark.parametrize("n", [2, 3, 5, 8])
def test_a_chain_is_the_parity_of_its_operands(kind, n):
    chain = reduce(kind, bits(n))
    form = nnf(chain)
    for number in range(2**n):
        values = [bool(number >> i & 1) for i in range(n)]
        event = {f"x{i}": value for i, value in enumerate(values)}
        odd = sum(values) % 2 == 1
        flips = kind is Xnor and n % 2 == 0
        assert matches(form, event) is (odd != flips)


def test_one_unknown_operand_makes_a_chain_unknown():
    form = nnf(reduce(Xor, bits(5)))
    negated = nnf(Not(reduce(Xor, bits(5))))
    for missing in range(5):
        event = {f"x{i}": True for i in range(5) if i != missing}
        assert not matches(form, event)
        assert not matches(negated, event)


@pytest.mark.slow
@pytest.mark.parametrize("shape", [lambda a, b: Xor(a, b), lambda a, b: Xor(b, a)])
def test_a_long_chain_costs_its_square_whichever_way_it_leans(shape):
    n = 128
    chain = reduce(shape, bits(n))
    assert nnf_leaves(chain) == n * n
    form = nnf(chain)
    assert leaves(form) == n * n
    assert matches(form, {f"x{i}": i < 5 for i in range(n)})
    assert not matches(form, {f"x{i}": i < 6 for i in range(n)})


def test_xors_that_grow_too_much_are_refused_with_estimate_and_limit():
    nested: Expr = bits(1)[0]
    for i in range(40):
        nested = Xor(And((nested, Comparison("y", "=", i))), Comparison("z", "=", i))
    with pytest.raises(ExpansionError) as caught:
        nnf(nested)
    error = caught.value
    assert error.limit == MAX_XOR_LEAVES
    assert error.estimate == nnf_leaves(nested) > 2**40
    assert f"{error.estimate:,}" in str(error)
    assert isinstance(error, MatchwoodError)
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.estimate, copy.limit) == (str(error), error.estimate, error.limit)


def test_the_deepest_tree_is_normalised():
    expr: Expr = Comparison("a", "=", 1)
    for level in range(MAX_DEPTH):
        other = Comparison("b", "=", level)
        expr = Not(expr) if level % 3 == 0 else (And if level % 3 == 1 else Or)((expr, other))
    event = {"a": 1, "b": 5}
    assert matches(nnf(expr), event) is matches(expr, event)
    assert matches(simplify(nnf(expr)), event) is matches(expr, event)


# ── constant folding ────────────────────────────────────────────────────────────────────────────


@given(seed=seeds())
def test_simplify_is_true_where_its_source_is(seed):
    source = drawn(seed)
    form = simplify(nnf(source))
    is_true_where(form, source)
    inner = [node for node in nodes(form) if node is not form]
    assert not any(isinstance(node, Const) for node in inner)
    assert simplify(form) == form


@pytest.mark.parametrize("kind", [And, Or])
def test_simplify_flattens_and_drops_what_is_repeated(kind):
    a, b, c = bits(3)
    assert simplify(kind((a, kind((b, kind((a, c)))), b))) == kind((a, b, c))
    assert simplify(kind((a, a))) == a


def test_simplify_keeps_values_apart_that_python_calls_equal():
    one, true = Comparison("a", "=", 1), Comparison("a", "=", True)
    assert simplify(Or((one, true))) == Or((one, true))
    assert len(simplify(Or((one, true))).operands) == 2


def test_an_attribute_or_its_negation_is_not_always_true():
    form = simplify(nnf(parse("a = 1 OR NOT a = 1")))
    assert form not in (TRUE, FALSE)
    assert not matches(form, {})


# ── disjunctive normal form ─────────────────────────────────────────────────────────────────────


@given(seed=seeds())
def test_dnf_is_true_where_its_source_is(seed):
    source = drawn(seed)
    is_true_where(dnf(source), source)


@given(seed=seeds())
def test_dnf_is_an_or_of_conjunctions(seed):
    form = dnf(drawn(seed))
    for term in form.operands if isinstance(form, Or) else (form,):
        assert isinstance(term, (Predicate, Const, And))
        if isinstance(term, And):
            assert all(isinstance(leaf, Predicate) for leaf in term.operands)


def test_the_estimate_of_terms_is_exact():
    n = 6
    pairs = [Or((Comparison(f"x{i}", "=", 1), Comparison(f"y{i}", "=", 1))) for i in range(n)]
    source = And(tuple(pairs))
    assert dnf_terms(source) == 2**n
    assert len(dnf(source, limit=2**n).operands) == 2**n
    with pytest.raises(ExpansionError) as caught:
        dnf(source, limit=2**n - 1)
    assert (caught.value.estimate, caught.value.limit) == (2**n, 2**n - 1)
    assert f"limit={2**n}" in str(caught.value)


@pytest.mark.slow
def test_a_hopeless_dnf_is_refused_before_it_is_tried():
    pairs = [Or((Comparison(f"x{i}", "=", 1), Comparison(f"y{i}", "=", 1))) for i in range(5_000)]
    with pytest.raises(ExpansionError) as caught:
        dnf(And(tuple(pairs)), limit=1_000)
    assert caught.value.estimate == 2**5_000


@given(found=events(dict.fromkeys(LETTERS, "number")))
def test_the_dnf_of_a_constant_is_that_constant(found):
    for source in (TRUE, FALSE, Not(TRUE), And((TRUE, FALSE)), Or((FALSE, TRUE))):
        assert dnf(source) in (TRUE, FALSE)
        assert matches(dnf(source), found) is matches(source, found)
