"""Texts of dates, intervals and bytes, where the session has them written in another style."""

from __future__ import annotations

from sqlglot import exp

from ...catalog.values.errors import SQLError
from ...catalog.values.session_zone import session_style
from ...catalog.values.type_kinds import TypeKind
from ..analyze.types.types import Types, untyped
from ..builtins.templates import plain, text
from ..parse import position_of


def styled_text(tree: exp.Expr, kind: TypeKind | None) -> exp.Expr | None:
    """The text of a value of a kind; None where it is written plainly."""
    style = session_style()
    if kind is None or style.writes_plainly(kind):
        return None
    return plain(f"text_of_{kind.value.lower()}", tree, text(style.name))


def refuse_styled_parts(tree: exp.Expr, types: Types, what: str) -> None:
    """Raises SQLError 0A000 where an interval or bytes would be written into something that does
    not follow another style: as the value itself, or perhaps as a part of a row. Dates in documents
    have one form."""
    style, type = session_style(), types.of(tree)
    known = None if type is None else (type.element or type).kind
    for kind, name in _NAMES.items():
        if style.writes_plainly(kind) or untyped(tree) or known not in (kind, None):
            continue
        raise SQLError(
            "0A000",
            f"{what} of {'a row' if known is None else kind.value} is not supported with this "
            f"{name}",
            position=position_of(tree),
            hint=f"RESET {name}, or cast the value to TEXT.",
        )


_NAMES = {TypeKind.INTERVAL: "IntervalStyle", TypeKind.BYTES: "bytea_output"}
