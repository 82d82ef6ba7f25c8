"""FOR UPDATE and FOR SHARE: the locking clauses of a query."""

from __future__ import annotations

from sqlglot import exp

from ...catalog.values.errors import SQLError
from ...kvlayer.transaction_modes import LockMode, WhenLocked
from .statement import Syntax
from .walks import find_all


class RowLock(Syntax):
    """One clause. `tables` are the names or aliases that it is OF; empty means all.

    Postgres has four strengths. FOR NO KEY UPDATE is FOR UPDATE here, and FOR KEY SHARE is FOR
    SHARE, as in CockroachDB: a row is locked whole.
    """

    mode: LockMode
    when_locked: WhenLocked
    tables: tuple[str, ...]


_WHEN = {None: WhenLocked.WAIT, True: WhenLocked.NOWAIT, False: WhenLocked.SKIP}
_REFUSED = {
    "distinct": "DISTINCT clause",
    "group": "GROUP BY clause",
    "having": "HAVING clause",
    "windows": "window functions",
}


def cut_row_locks(tree: exp.Expr, position: int | None) -> tuple[RowLock, ...]:
    """Takes the locking clauses off a query. Raises SQLError 0A000 where they mean nothing."""
    clauses = tree.args.get("locks") or []
    if sum(1 for _ in find_all(tree, exp.Lock)) > len(clauses):
        raise SQLError(
            "0A000",
            "FOR UPDATE and FOR SHARE are not supported in a subquery",
            position=position,
            hint="Write the clause at the end of the statement.",
        )
    if not clauses:
        return ()
    if not isinstance(tree, exp.Select) or tree.args.get("from_") is None:
        raise SQLError(
            "0A000",
            "FOR UPDATE is only allowed on the rows of tables, not on UNION, VALUES or the like",
            position=position,
        )
    for argument, what in _REFUSED.items():
        if tree.args.get(argument):
            raise SQLError("0A000", f"FOR UPDATE is not allowed with {what}", position=position)
    if any(item.find(exp.AggFunc, exp.Window) is not None for item in tree.expressions):
        raise SQLError(
            "0A000", "FOR UPDATE is not allowed with aggregate functions", position=position
        )
    locks = tuple(_row_lock(clause) for clause in clauses)
    tree.set("locks", None)
    return locks


def _row_lock(clause: exp.Lock) -> RowLock:
    return RowLock(
        mode=LockMode.EXCLUSIVE if clause.args.get("update") else LockMode.SHARED,
        when_locked=_WHEN[clause.args.get("wait")],
        tables=tuple(table.name for table in clause.expressions),
    )
