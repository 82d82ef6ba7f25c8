"""Frames of windows: how far they reach, in the type of what the window is ordered by.

RANGE BETWEEN '1 day' PRECEDING …   of a date: CAST('1 day' AS INTERVAL)
"""

from __future__ import annotations

from sqlglot import exp

from ....catalog.values.column_types import ColumnType
from ....catalog.values.errors import SQLError
from ....catalog.values.type_kinds import TypeKind
from ...builtins.signatures import NUMBERS
from ...builtins.type_names import type_name
from ...parse import folded, position_of
from .common_types import as_type
from .derived_types import INT8
from .types import INTERVAL, Types

_MOMENTS = (
    TypeKind.DATE, TypeKind.TIME, TypeKind.TIMESTAMP, TypeKind.TIMESTAMPTZ, TypeKind.INTERVAL
)  # fmt: skip


def resolve_frame(spec: exp.WindowSpec, types: Types) -> None:
    """Types the reach of a frame that is written as a text. Raises SQLError 0A000 for one that
    PostgreSQL does not add to what the window is ordered by."""
    reaches = [spec.args.get(side) for side in ("start", "end")]
    offsets = [reach for reach in reaches if isinstance(reach, exp.Expr)]
    by_range = str(spec.args.get("kind") or "").upper() == "RANGE"
    for offset in offsets:
        if not by_range:
            as_type(offset, INT8, types)
            continue
        key = types.of(_key(spec))
        if key is None or key.kind not in (*_MOMENTS, *NUMBERS):
            continue
        wanted = INTERVAL if key.kind in _MOMENTS else key
        found = types.of(as_type(offset, wanted, types))
        if found is not None and not _reaches(found, key):
            raise SQLError(
                "0A000",
                "RANGE with offset PRECEDING/FOLLOWING is not supported for column type "
                f"{type_name(key)} and offset type {type_name(found)}",
                position=position_of(offset),
                hint="Cast the offset value to an appropriate type.",
            )


def _reaches(offset: ColumnType, key: ColumnType) -> bool:
    if key.kind in _MOMENTS:
        return offset.kind is TypeKind.INTERVAL
    whole = key.kind is TypeKind.INT8
    return offset.kind is TypeKind.INT8 if whole else offset.kind in NUMBERS


def _key(spec: exp.WindowSpec) -> exp.Expr | None:
    """Returns the window's order, its own or that of the window that it names."""
    window = spec.parent
    for _ in range(_NAMED_MAX):
        if not isinstance(window, exp.Window):
            return None
        order = window.args.get("order")
        if order is not None:
            keys = [item.this for item in order.expressions]
            return keys[0] if len(keys) == 1 else None
        name, select = window.args.get("alias"), window.find_ancestor(exp.Select)
        if name is None or select is None:
            return None
        defined = select.args.get("windows") or ()
        window = next((one for one in defined if folded(one.this) == folded(name)), None)
    return None


_NAMED_MAX = 8
"""Windows that name others, one after another: as many are looked through."""
