"""Fractions of seconds: `TIMESTAMP(2)`, `CURRENT_TIMESTAMP(0)`, which are the value rounded.

DuckDB takes such a type for one of milliseconds or seconds, or overlooks its digits."""

from __future__ import annotations

from sqlglot import exp

from ..analyze.scalars import type_of_cast
from ..builtins.templates import call, number
from ..syntax.refusals import unsupported
from ..syntax.tree_names import DECLARED
from ..syntax.walks import find_all

_DIGITS_MAX = 6
"""A value has microseconds: more digits keep it as it is."""

_ROUNDED = {
    exp.DataType.Type.TIME: "time_digits",
    exp.DataType.Type.TIMESTAMP: "timestamp_digits",
    exp.DataType.Type.TIMESTAMPTZ: "timestamptz_digits",
}
_NOW = {
    exp.CurrentTimestamp: "timestamptz_digits",
    exp.Localtimestamp: "timestamp_digits",
    exp.Localtime: "time_digits",
}


def round_moments(query: exp.Expr) -> None:
    """Puts the rounding where the digits stand. Raises SQLError 0A000: fields of an interval."""
    # Inner ones first: what is rounded is copied.
    for node in reversed(list(find_all(query, exp.Cast, *_NOW))):
        if isinstance(node, exp.Cast):
            _round_cast(node)
        elif node.this is not None:
            _replace(node, _NOW[type(node)], node.__class__(), node.this)


def _round_cast(node: exp.Cast) -> None:
    for inner in (node.to, *find_all(node.to, exp.DataType)):
        if isinstance(inner.this, exp.Interval):
            raise unsupported(
                "a cast to some fields of INTERVAL",
                node,
                "Cast to INTERVAL; extract() takes a field of the value.",
            )
        if inner is not node.to and inner.this in _ROUNDED and inner.expressions:
            raise unsupported(f"elements of type {inner.sql('postgres')}", node)
    if node.to.this in _ROUNDED and node.to.expressions:
        target = exp.DataType(this=node.to.this)
        made = node.__class__(this=node.this.copy(), to=target)
        _replace(node, _ROUNDED[node.to.this], made, node.to.expressions[0])


def _replace(node: exp.Expr, name: str, value: exp.Expr, digits: exp.Expr) -> None:
    count = int(digits.name or digits.this.name)
    if count < _DIGITS_MAX:
        value = call(name, value, number(count))
    if isinstance(node, exp.Cast):
        value.meta[DECLARED] = type_of_cast(node)
    node.replace(value)
