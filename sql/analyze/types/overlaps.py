"""`(start, end) OVERLAPS (start, end)`: two spans of time, of which each holds its start.

(day, INTERVAL '1 week') OVERLAPS ('2024-02-01'::DATE, due)

postgres_overlap(CAST(day AS TIMESTAMP), CAST(day + INTERVAL '1 week' AS TIMESTAMP), …)
"""

from __future__ import annotations

from sqlglot import exp

from ....catalog.values.column_types import ColumnType
from ....catalog.values.errors import SQLError
from ....catalog.values.type_kinds import TypeKind
from ...builtins.templates import call, cast_to
from ...builtins.type_names import type_name
from ...parse import position_of
from .rows import is_row
from .types import INTERVAL, Types, untyped

_MOMENTS = (TypeKind.TIMESTAMPTZ, TypeKind.TIMESTAMP, TypeKind.TIME)
"""What spans are compared in, the widest first: a date is the TIMESTAMP of its midnight."""


def resolve_overlaps(tree: exp.Overlaps, types: Types) -> None:
    """Makes all four moments of one type, and an interval the end that it leads to. Raises SQLError
    42601, 42725 and 42883."""
    spans = [_span(side) for side in (tree.this, tree.expression)]
    found = [types.of(moment) for span in spans for moment in span]
    kinds = {TypeKind.TIMESTAMP if type.kind is TypeKind.DATE else type.kind
             for type in found if type is not None} - {TypeKind.INTERVAL}  # fmt: skip
    timed = TypeKind.TIME in kinds and len(kinds) > 1
    lengths = any(types.of(start) == INTERVAL for start, _ in spans)
    literals = all(untyped(moment) for span in spans for moment in span)
    if literals or lengths or timed or not kinds <= set(_MOMENTS):
        names = ", ".join(type_name(types.given(moment)) for span in spans for moment in span)
        raise SQLError(
            "42725" if literals else "42883",
            f"function pg_catalog.overlaps({names}) "
            + ("is not unique" if literals else "does not exist"),
            position=position_of(tree),
            hint="You might need to add explicit type casts.",
        )
    widest = next((kind for kind in _MOMENTS if kind in kinds), TypeKind.TIMESTAMPTZ)
    for start, end in spans:
        _as_moments(start, end, ColumnType(widest), types)


def overlap(tree: exp.Overlaps) -> exp.Expr:
    """The call that tells, of moments that are resolved."""
    return call("overlap", *_span(tree.this), *_span(tree.expression))


def _span(side: exp.Expr) -> list[exp.Expr]:
    entries = list(side.unnest().expressions) if is_row(side.unnest()) else []
    if len(entries) != 2:
        raise SQLError(
            "42601",
            "wrong number of parameters in OVERLAPS expression",
            position=position_of(side),
            hint="Write (start, end) OVERLAPS (start, end).",
        )
    return entries


def _as_moments(start: exp.Expr, end: exp.Expr, type: ColumnType, types: Types) -> None:
    length = types.of(end) == INTERVAL
    begun = cast_to(start.copy(), type)
    reached: exp.Expr = end.copy()
    if length:
        reached = exp.Add(this=begun.copy(), expression=reached)
    start.replace(begun)
    end.replace(cast_to(reached, type))
