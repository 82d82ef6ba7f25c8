"""COLLATE: there is one collation, whose letters are those of every alphabet."""

from __future__ import annotations

from sqlglot import exp

from ...catalog.values.errors import SQLError
from ..builtins.macros import PREFIX
from ..parse import position_of

_BYTES = frozenset({"C", "POSIX"})
"""Collations in which letters beyond ASCII have no case and are of no class."""
_OF_LETTERS = (
    exp.Lower, exp.Upper, exp.Initcap, exp.ILike, exp.RegexpLike, exp.RegexpILike, exp.SimilarTo,
)  # fmt: skip
_CALLS_OF_LETTERS = frozenset({"upper", "lower", "initcap"})


def check_letters(node: exp.Collate) -> None:
    """Raises SQLError 0A000 for COLLATE "C" where PostgreSQL would see letters of ASCII alone.

    Texts are ordered by their bytes anyway, so elsewhere it says what is.
    """
    if node.expression.name not in _BYTES:
        return
    above = node.parent
    while isinstance(above, exp.Expr) and not isinstance(above, exp.Select):
        if isinstance(above, _OF_LETTERS) or _asks_for_letters(above):
            raise SQLError(
                "0A000",
                'not supported: COLLATE "C" of a text whose letters are asked for',
                position=position_of(above),
                hint="Leave it out, and write [A-Za-z] for letters of ASCII.",
            )
        above = above.parent


def _asks_for_letters(node: exp.Expr) -> bool:
    name = node.name.lower().removeprefix(PREFIX) if isinstance(node, exp.Anonymous) else ""
    return name in _CALLS_OF_LETTERS or name.startswith("regexp_")
