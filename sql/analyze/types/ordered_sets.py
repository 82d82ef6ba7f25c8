"""Ordered-set aggregates: which there are, and what each is an aggregate of."""

from __future__ import annotations

from sqlglot import exp

from ....catalog.values.column_types import ColumnType
from ....catalog.values.errors import SQLError
from ....catalog.values.type_kinds import TypeKind
from ...builtins.signatures import NUMBERS
from ...builtins.type_names import type_name
from ...parse import position_of
from .types import Types

_ORDERED = {
    exp.PercentileCont: "percentile_cont",
    exp.PercentileDisc: "percentile_disc",
    exp.Mode: "mode",
}


def check_ordered_set(tree: exp.WithinGroup, types: Types) -> None:
    """Raises SQLError for an ordered set that PostgreSQL has no aggregate for."""
    name = _ORDERED.get(type(tree.this))
    if name is None:
        raise SQLError(
            "0A000",
            f"not supported: {tree.this.key} WITHIN GROUP",
            position=position_of(tree),
            hint="Count the rows before the one in question, as count(*) FILTER (WHERE …) + 1.",
        )
    if isinstance(tree.parent, exp.Window):
        raise SQLError(
            "0A000",
            f"OVER is not supported for ordered-set aggregate {name}",
            position=position_of(tree),
        )
    given = [] if isinstance(tree.this, exp.Mode) else [tree.this.this]
    keys = [item.this for item in tree.expression.expressions]
    known = [types.of(key) for key in keys]
    between = name != "percentile_cont" or _lies_between(known[0])
    if len(keys) != 1 or not between:
        of = ", ".join(type_name(types.given(each)) for each in [*given, *keys])
        raise SQLError(
            "42883",
            f"function {name}({of}) does not exist",
            position=position_of(tree),
            hint="No function matches the given name and argument types.",
        )


def _lies_between(type: ColumnType | None) -> bool:
    """Whether there is something between two values."""
    return type is None or type.kind in (*NUMBERS, TypeKind.INTERVAL)
