"""percentile_cont() and percentile_disc(): DuckDB's, where they are PostgreSQL's, else of a list.

    percentile_cont(0.5) WITHIN GROUP (ORDER BY n)      … (ORDER BY CAST(n AS DOUBLE)), a float
    percentile_cont(0.9) WITHIN GROUP (ORDER BY took)   postgres_percentile_of_intervals(
                                                            array_agg(took ORDER BY took), 0.9)

DuckDB's take a constant fraction, and its percentile_cont() of a decimal rounds to the digits of
it: what lies between 1 and 2 is 1 there.
"""

from __future__ import annotations

from sqlglot import exp

from ....catalog.values.errors import SQLError
from ....catalog.values.type_kinds import TypeKind
from ...analyze.types.derived_types import FLOAT8
from ...analyze.types.types import Types
from ...builtins.signatures import NUMBERS
from ...builtins.templates import call, cast_to
from ...parse import position_of

PERCENTILES = (exp.PercentileCont, exp.PercentileDisc)


def percentile(tree: exp.WithinGroup, types: Types) -> None:
    """Puts in place what DuckDB computes."""
    fraction = tree.this.this
    (ordered,) = tree.expression.expressions
    kind = types.kind(ordered.this)
    continuous = isinstance(tree.this, exp.PercentileCont)
    if continuous and kind in NUMBERS and kind is not TypeKind.FLOAT8:
        ordered.set("this", cast_to(ordered.this.copy(), FLOAT8))
    if _is_constant(fraction) and not (continuous and kind is TypeKind.INTERVAL):
        return
    found = types.of(fraction)
    if found is not None and found.element is not None:
        raise SQLError(
            "0A000",
            "not supported: several fractions that are no constants, or of intervals",
            position=position_of(tree),
            hint="Ask for each percentile by itself.",
        )
    name = "percentile_at"
    if continuous:
        between = kind is TypeKind.INTERVAL
        name = "percentile_of_intervals" if between else "percentile_between"
    _listed(tree, name, cast_to(fraction.copy(), FLOAT8))


def _is_constant(fraction: exp.Expr) -> bool:
    """Whether it is one that DuckDB takes, or several."""
    inner = fraction.unnest()
    if isinstance(inner, exp.Array):
        return all(map(_is_constant, inner.expressions))
    if isinstance(inner, exp.Cast):
        return _is_constant(inner.this)
    return isinstance(inner, exp.Literal) and not inner.is_string and 0 <= float(inner.this) <= 1


def _listed(tree: exp.WithinGroup, name: str, fraction: exp.Expr) -> None:
    """Puts the macro of a list in the place of an aggregate and of its FILTER."""
    (ordered,) = tree.expression.expressions
    key = ordered.this
    present: exp.Expr = exp.Not(this=exp.Is(this=key.copy(), expression=exp.null()))
    listed = exp.ArrayAgg(this=exp.Order(this=key.copy(), expressions=[ordered.copy()]))
    whole: exp.Expr = tree
    if isinstance(tree.parent, exp.Filter) and tree.arg_key == "this":
        whole = tree.parent
        present = exp.And(this=present, expression=exp.paren(whole.expression.this.copy()))
    filtered = exp.Filter(this=listed, expression=exp.Where(this=present))
    whole.replace(call(name, filtered, fraction))
