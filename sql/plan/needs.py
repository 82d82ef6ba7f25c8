"""Needs: the privileges that a query or DML needs, on which tables.

They follow from the statement and from what its names stand for, never from whose it is: so they
are kept beside the plan, and compared with the rights of the moment each time that it runs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from sqlglot import exp

from ...catalog.descriptors.descriptor import TableDescriptor
from ...catalog.descriptors.relaxed_tables import refuse_other_writers
from ...catalog.rights.privileges import Privilege, Securable, SecurableKind, securable
from ...catalog.rights.rights import Rights
from ...catalog.rights.users import ROOT
from ...catalog.values.errors import SQLError
from ..analyze.binder import NamedTables, Relations, parts_of
from ..analyze.views import names_in
from ..syntax.statements import Delete, Insert, InsertMode, PlannedStatement, Query, Update
from .plans import Plan, SelectPlan, WithPlan


@dataclass(frozen=True, slots=True)
class Need:
    """Privileges, all of which must be held on one object: by the user, or by the owner of `view`,
    through which it is read."""

    privileges: int
    object: Securable
    view: int | None = None

    def holder(self, user: str, rights: Rights) -> str:
        return user if self.view is None else rights.owner(self.view)


Needs = tuple[Need, ...]


def needs_of(statement: PlannedStatement, tables: NamedTables, relations: Relations) -> Needs:
    """Returns the privileges that a statement needs on the tables that it names; those of locks
    are known with its plan: `with_locks`."""
    found: list[Need] = []
    for name in tables.read:
        found += needs_on(relations[name.parts], Privilege.SELECT)
    for part in parts_of(statement):
        if not isinstance(part, Query):
            found += needs_on(relations[part.table.parts], _writing(part))
    return tuple(dict.fromkeys([*found, *_needs_of_views(relations)]))


def with_locks(needs: Needs, plan: Plan) -> Needs:
    """Returns a statement's needs with those of the rows that its plan locks."""
    for part in plan.parts if isinstance(plan, WithPlan) else (plan,):
        if isinstance(part, SelectPlan) and part.locking is not None:
            for table in part.locking.tables:
                needs += tuple(needs_on(table, Privilege.UPDATE))
    return needs


def _needs_of_views(relations: Relations) -> Iterable[Need]:
    """Yields the privileges that owners of views need on the tables below, as in Postgres."""
    views = {table.id: table for table in relations.values() if table.view is not None}
    for view in views.values():
        for name in names_in(view):
            for need in needs_on(relations[name.parts], Privilege.SELECT):
                yield replace(need, view=view.id)


def _writing(statement: Insert | Update | Delete) -> Privilege:
    """Returns the privileges on the table that is written: SELECT too, where its rows are read."""
    reads = bool(statement.returning)
    match statement:
        case Insert(mode=InsertMode.UPSERT):
            return Privilege.INSERT | Privilege.UPDATE | Privilege.SELECT
        case Insert(conflict=conflict):
            needed = Privilege.INSERT
            if conflict is not None:
                reads = True  # it tells which rows are there
                needed |= Privilege.UPDATE if conflict.assignments else Privilege.INSERT
        case Update(where=where):
            needed = Privilege.UPDATE
            reads = (
                reads
                or where is not None
                or any(value.find(exp.Column) is not None for _, value in statement.assignments)
            )
        case Delete(where=where):
            needed = Privilege.DELETE
            reads = reads or where is not None
    return needed | Privilege.SELECT if reads else needed


def needs_on(table: TableDescriptor, privileges: int) -> Iterable[Need]:
    """Yields the needs of privileges on a table: those on the table, and USAGE of its schema.
    Virtual tables need none. Raises SQLError 55000 for writes to a table that a relaxed log
    writes."""
    if table.id < 0:
        return
    if privileges & _WRITES:
        refuse_other_writers(table)
    yield Need(int(privileges), securable(table))
    schema = Securable(SecurableKind.SCHEMA, table.schema_id, "", (table.database_id,))
    yield Need(int(Privilege.USAGE), schema)


_WRITES = Privilege.INSERT | Privilege.UPDATE | Privilege.DELETE


def missing(rights: Rights, user: str, needs: Needs) -> Need | None:
    """Returns the first need that is not met, with only its missing privileges."""
    if user == ROOT:
        return None
    for need in needs:
        lacking = need.privileges & ~rights.held(need.holder(user, rights), need.object)
        if lacking:
            return replace(need, privileges=lacking)
    return None


def refused(user: str, privileges: int, kind: SecurableKind, name: str) -> SQLError:
    """Returns the error for a lack of privileges, which names the first of them."""
    lacking = next(str(one.name) for one in Privilege if one & privileges)
    if kind is SecurableKind.SYSTEM:
        message = f"user {user} does not have {lacking} system privilege"
        return SQLError("42501", message, hint=f"GRANT SYSTEM {lacking} TO {user}.")
    return SQLError(
        "42501", f"user {user} does not have {lacking} privilege on {kind.value} {name}"
    )
