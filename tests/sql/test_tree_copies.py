"""Nodes that are put in the place of others, in lists and alone."""

from __future__ import annotations

from functools import partial

import pytest
from sqlglot import exp, parse_one

from tailrace.sql.syntax.trees import exchange, taken, wrap


@pytest.mark.parametrize("hashed", [False, True])
def test_a_node_is_wrapped_in_its_own_place(hashed: bool) -> None:
    tree = parse_one("SELECT a + 1, f(b), c FROM t WHERE d > 2")
    if hashed:
        before = hash(tree)
    for number, item in enumerate(list(tree.expressions)):
        made = wrap(item, partial(exp.alias_, alias=f"n{number}", copy=False))
        assert (made.parent, made.arg_key, made.index) == (tree, "expressions", number)
        assert item.parent is made
    where = tree.find(exp.GT)
    assert where is not None
    wrap(where, lambda node: exp.Not(this=node))
    assert tree.sql() == "SELECT a + 1 AS n0, F(b) AS n1, c AS n2 FROM t WHERE NOT d > 2"
    if hashed:
        assert hash(tree) != before, "what was kept of the tree is of another one"


def test_what_is_taken_leaves_a_hole() -> None:
    tree = parse_one("SELECT a, b")
    item = taken(tree.expressions[1])
    assert (item.parent, item.arg_key, item.index) == (None, None, None)
    assert tree.sql() == "SELECT a, NULL"
    exchange(tree.expressions[1], item)
    assert tree.sql() == "SELECT a, b"
