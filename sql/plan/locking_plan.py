"""How the rows of SELECT … FOR UPDATE are found and locked."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from ...catalog.descriptors.descriptor import TableDescriptor
from ...catalog.descriptors.system_tables import FIRST_USER_ID
from ...catalog.values.errors import SQLError
from ...kvlayer.transaction_modes import WhenLocked
from ..analyze.binder import Relations
from ..analyze.scalars import NotNative
from ..lower.transpile import folded_alias, transpile
from ..parse import position_of
from ..parse.queries import table_name
from ..syntax.row_locks import RowLock
from .native_select import row_count
from .plans import LockedTable, LockingPlan
from .scan_accesses import scan_accesses


def plan_locking(
    tree: exp.Expr, locks: Sequence[RowLock], relations: Relations
) -> LockingPlan | None:
    """The locking part of a query's plan. Raises SQLError."""
    if not locks:
        return None
    assert isinstance(tree, exp.Select), tree
    tables = _locked_tables(tree, locks, relations)
    keyed = tree.copy()
    for number, (alias, locked) in enumerate(tables):
        for column in locked.descriptor.key_columns:
            key = exp.column(column.name, table=alias, quoted=True)
            keyed.append(
                "expressions", exp.alias_(key, f"locked {number} {column.name}", quoted=True)
            )
    limit = offset = None
    skips = any(locked.when_locked is WhenLocked.SKIP for _, locked in tables)
    if skips:
        # Rows that are skipped must not count: the limit is applied behind the locking.
        try:
            limit, offset = row_count(tree.args.get("limit")), row_count(tree.args.get("offset"))
        except NotNative:
            raise SQLError(
                "0A000", "SKIP LOCKED takes LIMIT and OFFSET of constants and parameters"
            ) from None
        keyed.set("limit", None)
        keyed.set("offset", None)
    return LockingPlan(
        tables=tuple(locked for _, locked in tables),
        analytic=transpile(keyed, relations, scan_accesses(tree, relations)),
        limit=limit,
        offset=offset,
    )


def _locked_tables(
    tree: exp.Select, locks: Sequence[RowLock], relations: Relations
) -> list[tuple[str, LockedTable]]:
    """The tables that are locked, by alias. Where two clauses name one the stronger counts."""
    sources = _sources(tree)
    found: dict[str, LockedTable] = {}
    for lock in locks:
        for name in lock.tables or sources:
            source = sources.get(name)
            if source is None:
                raise SQLError("42P01", f'relation "{name}" in FOR UPDATE clause not found in FROM')
            descriptor = relations[table_name(source).parts]
            _check_lockable(descriptor, source)
            locked = LockedTable(descriptor, lock.mode, lock.when_locked)
            known = found.get(name)
            found[name] = locked if known is None else known.stronger(locked)
    return list(found.items())


def _sources(tree: exp.Select) -> dict[str, exp.Table]:
    """The tables of FROM and its joins; subqueries among them are not locked."""
    items = [tree.args["from_"].this]
    items += [join.this for join in tree.args.get("joins") or []]
    return {folded_alias(item): item for item in items if isinstance(item, exp.Table)}


def _check_lockable(descriptor: TableDescriptor, source: exp.Table) -> None:
    if descriptor.id < FIRST_USER_ID:
        raise SQLError(
            "42501",
            f'permission denied for table "{descriptor.name}"',
            position=position_of(source),
        )
