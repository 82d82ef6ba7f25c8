"""Dimensions of arrays: they have one, and what would make one of several is refused."""

from __future__ import annotations

from sqlglot import exp

from ....catalog.values.errors import SQLError
from ...parse import position_of
from ...syntax.refusals import unsupported
from .types import Types


def several_dimensions(tree: exp.Expr) -> SQLError:
    """Returns the error (0A000) for an array of several dimensions."""
    return unsupported(
        "arrays of several dimensions",
        tree,
        "Keep the inner ones as rows, or as a document (JSONB).",
    )


def check_dimensions(tree: exp.Expr, types: Types) -> None:
    """Raises SQLError 0A000 for an array of arrays, and 42P18 for one of nothing at all."""
    if isinstance(tree, exp.Array) and not tree.expressions:
        if not isinstance(tree.parent, exp.Cast):
            raise SQLError(
                "42P18",
                "cannot determine type of empty array",
                position=position_of(tree),
                hint="Explicitly cast to the desired type, for example ARRAY[]::INT8[].",
            )
        return
    if types.of_elements(tree) is not None:
        raise several_dimensions(tree)
