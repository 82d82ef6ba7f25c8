"""MERGE, parsed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import Enum

from sqlglot import exp

from .conflict_clause import Overriding
from .names import ObjectName


class MergeAction(Enum):
    """What a WHEN does. The value is how EXPLAIN tells it."""

    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"
    NOTHING = "do nothing"


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeWhen:
    """`WHEN [NOT] MATCHED [AND condition] THEN action`.

    An INSERT has `values`, None for DEFAULT VALUES, and `columns` where it names them; an UPDATE
    has `assignments`.
    """

    matched: bool
    condition: exp.Expr | None
    action: MergeAction
    columns: tuple[exp.Identifier, ...] | None = None
    values: tuple[exp.Expr, ...] | None = None
    assignments: tuple[tuple[exp.Column, exp.Expr], ...] = ()
    overriding: Overriding | None = None
    position: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Merge:
    """`MERGE INTO table [AS alias] USING source ON condition WHEN …`"""

    table: ObjectName
    alias: str | None
    source: exp.Expr
    condition: exp.Expr
    whens: tuple[MergeWhen, ...]
    ctes: tuple[exp.CTE, ...] = ()
    returning: tuple[exp.Expr, ...] = ()
    """None: PostgreSQL 15 has no RETURNING of it."""

    def trees(self) -> Iterator[exp.Expr]:
        """Its expressions, less the source's."""
        yield self.condition
        for when in self.whens:
            if when.condition is not None:
                yield when.condition
            yield from when.values or ()
            yield from (value for _, value in when.assignments)

    def with_trees(self, made: Callable[[exp.Expr], exp.Expr]) -> Merge:
        """The statement with others in the place of `trees`."""
        whens = tuple(
            replace(
                when,
                condition=None if when.condition is None else made(when.condition),
                values=None if when.values is None else tuple(map(made, when.values)),
                assignments=tuple((target, made(value)) for target, value in when.assignments),
            )
            for when in self.whens
        )
        return replace(self, condition=made(self.condition), whens=whens)
