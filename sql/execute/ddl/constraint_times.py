"""SET CONSTRAINTS: when the open transaction looks at foreign keys that are deferrable."""

from __future__ import annotations

from ....catalog.values.errors import SQLError
from ....kvlayer.access import Transaction
from ...results.results import Result
from ...runtime.services import Services
from ...runtime.transactions import Deferrals, OpenTransaction
from ...syntax.names import ObjectName
from ...syntax.statements import SetConstraints
from ..write.foreign_keys import check_keys
from .schema_changes import coming_keys


async def set_constraints(
    services: Services, opened: OpenTransaction | None, database: str, statement: SetConstraints
) -> Result:
    """SET CONSTRAINTS. IMMEDIATE looks at once at what was noted of the keys: SQLError 23503."""
    tag = "SET CONSTRAINTS"
    if opened is None:
        return Result(tag=tag, notice=f"{tag} can only be used in transaction blocks")
    deferred = opened.deferred
    deferrals = Deferrals(all=statement.deferred)
    if statement.names:
        some = dict(deferred.deferrals.some)
        for name in statement.names:
            for table_id in await _tables_of(services, opened.transaction, database, name):
                some[table_id, name.parts[-1]] = statement.deferred
        deferrals = Deferrals(all=deferred.deferrals.all, some=some)
    if not statement.deferred:
        await check_keys(opened.transaction, deferred, deferrals)
    deferred.deferrals = deferrals
    return Result(tag=tag)


async def _tables_of(
    services: Services, transaction: Transaction, database: str, name: ObjectName
) -> list[int]:
    """The tables that have a foreign key of this name, or will have it when the transaction has
    committed, in the schema that is named or in `public`.

    Raises SQLError 42704 where none has, and 42809 where one is not deferrable.
    """
    *schema, constraint = name.parts
    tables = await services.catalog.list_tables(transaction, database, *schema[-1:])
    found: dict[int, bool] = {}
    for table in tables:
        keys = [*table.foreign_keys, *coming_keys(transaction, table.id)]
        key = next((key for key in keys if key.name == constraint), None)
        if key is not None:
            found[table.id] = key.deferrable
        elif table.find_constraint(constraint) or table.find_index(constraint):
            found[table.id] = False
    if not found:
        raise SQLError("42704", f'constraint "{constraint}" does not exist', position=name.position)
    if not all(found.values()):
        raise SQLError(
            "42809", f'constraint "{constraint}" is not deferrable', position=name.position
        )
    return list(found)
