"""The fractional digits of decimals that functions return, as far as constants say them."""

from __future__ import annotations

from sqlglot import exp

from ....catalog.values.column_types import ColumnType
from ....catalog.values.errors import SQLError
from ...builtins.functions.number_pattern import number_pattern
from .derived_types import decimal

_SCALE_MAX = 38


def type_of_pattern(tree: exp.Expr) -> ColumnType | None:
    """The type of a number that to_number() reads."""
    scale = scale_of_pattern(tree)
    return None if scale is None else decimal(scale)


def scale_of_pattern(tree: exp.Expr) -> int | None:
    """How many digits a pattern of to_number() reads behind the point; None for one that is no
    constant. Raises SQLError 42601."""
    literal = tree.unnest()
    if not isinstance(literal, exp.Literal) or not literal.is_string:
        return None
    read = number_pattern(literal.this)
    scale = read.behind + read.shifted
    if read.before + scale > _SCALE_MAX:
        raise SQLError("0A000", f"not supported: a pattern of more than {_SCALE_MAX} digits")
    return scale
