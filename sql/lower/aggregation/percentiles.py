"""percentile_cont() and percentile_disc(), as DuckDB has them.

    percentile_cont(0.5) WITHIN GROUP (ORDER BY n)      … (ORDER BY CAST(n AS DOUBLE)), a float

DuckDB's percentile_cont() of a decimal rounds to the digits of it: what lies between 1 and 2 is 1.
"""

from __future__ import annotations

from sqlglot import exp

from ....catalog.values.type_kinds import TypeKind
from ...analyze.types.derived_types import FLOAT8
from ...analyze.types.types import Types
from ...builtins.signatures import NUMBERS
from ...builtins.templates import cast_to
from ...syntax.refusals import unsupported

PERCENTILES = (exp.PercentileCont, exp.PercentileDisc)


def percentile(tree: exp.WithinGroup, types: Types) -> None:
    """Casts numbers between which values are asked for to floats, in place. Raises SQLError 0A000
    for a fraction that is no constant, and for values between intervals."""
    (ordered,) = tree.expression.expressions
    kind = types.kind(ordered.this)
    continuous = isinstance(tree.this, exp.PercentileCont)
    if continuous and kind in NUMBERS and kind is not TypeKind.FLOAT8:
        ordered.set("this", cast_to(ordered.this.copy(), FLOAT8))
    if not _is_constant(tree.this.this) or (continuous and kind is TypeKind.INTERVAL):
        raise unsupported(
            "percentiles of fractions that are no constants, or between intervals",
            tree,
            "Write 0.5, or extract(epoch FROM x) for an interval.",
        )


def _is_constant(fraction: exp.Expr) -> bool:
    """Whether it is one that DuckDB takes, or several."""
    inner = fraction.unnest()
    if isinstance(inner, exp.Array):
        return all(map(_is_constant, inner.expressions))
    if isinstance(inner, exp.Cast):
        return _is_constant(inner.this)
    return isinstance(inner, exp.Literal) and not inner.is_string and 0 <= float(inner.this) <= 1
