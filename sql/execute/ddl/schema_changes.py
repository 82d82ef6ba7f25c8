"""ALTER TABLE, indexes, TRUNCATE and DROP TABLE: from a statement to a schema change that began.

The first version is written in the statement's own transaction; its job goes on when that has
committed. Several statements of one transaction about one table are one change. SET CONSTRAINTS
knows the keys that are to come by it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ....catalog.descriptors.descriptor import TableDescriptor
from ....catalog.descriptors.publish_rules import locked_error
from ....catalog.descriptors.relaxed_tables import refuse_other_writers
from ....catalog.descriptors.system_tables import FIRST_USER_ID
from ....catalog.jobs import JobRecord
from ....catalog.rights.privileges import Privilege
from ....catalog.schema_change.planner import plan
from ....catalog.schema_change.references import referenced_index
from ....catalog.schema_change.stages import VersionStage
from ....catalog.schema_change.targets import ConstraintElement, FactsElement, IndexElement, Target
from ....catalog.store.catalog_changes import CatalogChanges
from ....catalog.values.errors import SQLError
from ....kvlayer.access import Transaction
from ....kvlayer.settings import declare_bool
from ....kvlayer.span import Span
from ...results.results import Result
from ...runtime.authorization import Actor
from ...runtime.relations import changed_tables, find_table, name_in, unknown_relation
from ...runtime.services import Services
from ...runtime.transactions import Deferrals, OpenTransaction
from ...syntax import schema_statements as s
from ...syntax import statements
from ...syntax.schema_statements import SequenceChange
from ...syntax.statement import ObjectName, at
from ..changer import Changer, skipped
from ..write.foreign_keys import check_keys
from ..write.mutations import Mutation
from ..write.row_rules import RowRules
from .given_columns import ascending, check_expressions, check_identity_type, notices, with_computed
from .schema_targets import TableChanges
from .sequences import add_identity, change_sequence, owned_by, run_identity_command, with_identity
from .views import check_views, rename

AUTO_UNLOCK = declare_bool(
    "sql.schema.auto_unlock.enabled",
    True,
    "whether a schema change unlocks a locked table and locks it again behind itself",
)


@dataclass(frozen=True, slots=True)
class _Draft:
    """The schema change of a table that a transaction has begun."""

    before: TableDescriptor
    after: TableDescriptor
    targets: tuple[Target, ...]
    job: JobRecord | None


class SchemaChangeStatements:
    """Carries out one statement that changes a table, and does not commit it."""

    def __init__(self, changer: Changer) -> None:
        self._changer = changer
        self._changes = CatalogChanges.of(changer.transaction)

    async def run(self, statement: s.TableChange) -> str | None:
        """Returns a notice. Raises SQLError, and Skipped."""
        match statement:
            case s.AlterTable():
                return await self._alter(statement)
            case s.CreateIndex():
                changes = await self._begun(await self._changer.found(statement.table))
                with at(statement.index.position):
                    changes.add_index(statement.index, if_not_exists=statement.if_not_exists)
                told = await self._done(changes, statement.text)
                return notices(told, ascending([statement.index]))
            case s.DropIndex() | s.RenameIndex():
                changes = await self._begun(await self._table_of_index(statement))
                changes.change_index(statement)
                return await self._done(changes, statement.text)
            case s.Truncate():
                return await self._truncate(statement)

    # ALTER TABLE.

    async def _alter(self, statement: s.AlterTable) -> str | None:
        names = [c.new_name for c in statement.commands if isinstance(c, s.RenameTable)]
        found = await self._changer.found(
            statement.table,
            views=len(names) == len(statement.commands),
            if_exists=statement.if_exists,
        )
        if names:
            await self._changer.need_table(found, Privilege.DROP)
        if found.view is not None:
            await rename(self._changer, found, names[-1])
            return None
        changes = await self._begun(found)
        for command in statement.commands:
            await self._command(changes, command, statement.table)
        changes.finish()
        ignored = [c.what for c in statement.commands if isinstance(c, s.IgnoredAlteration)]
        told = f"ignored, for it means nothing here: {', '.join(ignored)}" if ignored else None
        alone = ignored or any(isinstance(c, s.SetIdentity) for c in statement.commands)
        if not changes.targets and alone:
            return told  # of the table's sequence, or nothing
        done = await self._done(changes, statement.text)
        return notices(done, told)

    async def _truncate(self, statement: s.Truncate) -> str | None:
        left, notice = await run_truncation(self._changer, statement)
        for found in left:
            changes = await self._begun(found)
            if not await self._changer.transaction.scan(changes.read.primary_span, limit=1):
                continue  # what it would do is done
            changes.truncate()
            await self._done(changes, statement.text)
        return notice

    async def _command(
        self, changes: TableChanges, command: s.AlterCommand, table: ObjectName
    ) -> None:
        with at(command.position):
            await check_views(self._changer, changes.table, command)
            match command:
                case s.AddIdentity() | s.SetIdentity() | s.DropIdentity():
                    await run_identity_command(self._changer, changes, command, table)
                case s.AddConstraint(constraint=constraint):
                    await self._constraint(changes, constraint)
                case s.RenameTable(new_name=name):
                    label = f"rename table to {name}"
                    key = changes.table.primary_index_name  # which keeps its name
                    changes.add(FactsElement(label=label, name=name, primary_name=key))
                case s.AddColumn(definition=definition):
                    known = changes.table.find_column(definition.name) is not None
                    changes.run(await with_identity(self._changer, changes, command, table))
                    for constraint in () if known else definition.constraints:
                        await self._constraint(changes, constraint)
                case _:
                    changes.run(command)

    async def _constraint(self, changes: TableChanges, element: s.TableConstraint) -> None:
        """Adds a constraint, or an index, of whatever kind."""
        with at(element.position):
            match element:
                case s.Check():
                    changes.add_check(element)
                case s.Reference():
                    changes.add_reference(element, await self._referenced(changes, element))
                case s.IndexDefinition():
                    changes.add_index(element)

    async def _referenced(self, changes: TableChanges, reference: s.Reference) -> TableDescriptor:
        """The table that a foreign key refers to, with room for its next version: the key holds it
        back, so it needs the right to change it."""
        own = await self._changer.find(reference.table)
        if own is not None and own.id == changes.table.id:
            return changes.table
        found = await self._changer.found(reference.table)
        if found.temporary is not changes.table.temporary:
            kind = "temporary" if changes.table.temporary else "permanent"
            raise SQLError(
                "42P16",
                f"constraints on {kind} tables may reference only {kind} tables",
                position=reference.position,
            )
        if found.locked:
            raise locked_error(found)
        return await self.prepared(found)

    # Indexes.

    async def _table_of_index(self, statement: s.IndexStatement) -> TableDescriptor:
        """Raises SQLError 42704, and 42P09 where several tables of its schema have such an index;
        Skipped where IF EXISTS finds none."""
        changer, name = self._changer, statement.name
        if statement.table is not None:
            tables = [await changer.found(statement.table, if_exists=statement.if_exists)]
        else:
            path = ObjectName((*statement.schema, name), statement.position)
            catalog, reader = changer.services.catalog, changer.transaction
            try:
                full = await name_in(catalog, reader, path, changer.database)
                tables = await catalog.list_tables(reader, full.database, full.schema)
            except SQLError as error:  # there is no such database or schema
                raise skipped(error, statement.if_exists) from None
        owners = [table for table in tables if table.find_index(name) or table.named_key(name)]
        if len(owners) > 1:
            raise SQLError(
                "42P09",
                f'index name "{name}" is ambiguous',
                detail=f"Tables with such an index: {', '.join(t.name for t in owners)}.",
                hint="Write table@index.",
            )
        if not owners:
            unknown = SQLError("42704", f'index "{name}" does not exist')
            raise skipped(unknown, statement.if_exists)
        await changer.need_table(owners[0], Privilege.CREATE)
        return owners[0]

    # DROP TABLE.

    async def drop(self, table: TableDescriptor, text: str, *, beside_locked: bool = False) -> None:
        """Drops a table that nothing refers to. A lock is no hindrance: no row is read otherwise
        from then on, and feeds end there. Where its statement drops a locked one too, a job drops
        it: a transaction that unlocks does nothing else."""
        changes = await self._begun(table, unlocks=False)
        for key in changes.table.foreign_keys:
            changes.add(ConstraintElement(constraint=key), present=False)
        keyspace = changes.table.keyspace is not None
        label = "drop keyspace" if keyspace else "drop table"
        changes.add(FactsElement(label=label, dropped=True, keyspace=keyspace))
        await self._done(changes, text, beside_locked=beside_locked)

    # Common ways.

    async def prepared(self, table: TableDescriptor, *, unlocks: bool = True) -> TableDescriptor:
        """The table with room for its next version: its turn has come, nobody uses older ones."""
        if table.id < FIRST_USER_ID:
            raise SQLError("42501", f'permission denied: "{table.name}" is part of the system')
        if any(table.id == changed.id for changed in self._changes.published):
            return table
        settings = self._changer.services.store.settings
        if unlocks and table.locked and not settings.get(AUTO_UNLOCK):
            raise locked_error(table)
        await self._changer.wait_for_room(table)
        return table

    async def _begun(self, table: TableDescriptor, *, unlocks: bool = True) -> TableChanges:
        """The changes of a table that the transaction has begun, to which more are added: there is
        room for its next version."""
        read = await self.prepared(table, unlocks=unlocks)
        draft = self._changes.drafts.get(read.id)
        if draft is None:
            return TableChanges(read)
        assert isinstance(draft, _Draft), draft
        changes = TableChanges(draft.before, read)
        for target in draft.targets:
            changes.add(target.element, present=target.present)
        return changes

    async def _done(
        self, changes: TableChanges, text: str, *, beside_locked: bool = False
    ) -> str | None:
        """Publishes what there is to publish; returns a notice where that is nothing."""
        table = changes.read
        if not changes.targets:
            return "there was nothing to change"
        await refuse_lost_references(self._changer, changes)
        await check_expressions(changes.before, changes.table, self._changer.services.analytics)
        if self._changes.created(table.id):
            # Where it has rows, what changes is not of rows, or is written for them here.
            of_rows = not all(target.renames for target in changes.targets)
            filled = of_rows and await self._changer.transaction.scan(table.primary_span, limit=1)
            if filled and not _only_indexes(changes):
                raise SQLError(
                    "0A000",
                    f'table "{table.name}" was created in this transaction and has rows already',
                    hint="Commit before changing it.",
                )
            await publish_finished(self._changer, changes)
            if filled:
                await _write_again(self._changer, changes.table)
            return None
        known = self._changes.drafts.get(table.id)
        job = known.job if isinstance(known, _Draft) else None
        locked = changes.before.locked
        stages = plan(changes.targets, locked=locked, beside_locked=beside_locked)
        if known is None and not (isinstance(stages[0], VersionStage) and stages[0].lock is False):
            self._changes.check_no_lock_change()
        base = replace(changes.before, version=table.version)
        written = await self._changer.services.schema_changes.begin(
            self._changer.transaction,
            base,
            changes.targets,
            stages,
            text,
            draft=job,
            beside_locked=beside_locked,
        )
        draft = _Draft(changes.before, changes.table, tuple(changes.targets), written)
        self._changes.drafts[table.id] = draft
        return None

    async def drop_references(self, referrer_id: int, referenced: TableDescriptor) -> None:
        """Drops the foreign keys of one table that refer to another."""
        referrer = await self._changer.table(referrer_id)
        changes = await self._begun(referrer)
        for key in changes.read.foreign_keys:
            if key.referenced_id == referenced.id:
                changes.add(ConstraintElement(constraint=key), present=False)
        await self._done(changes, "DROP CONSTRAINT")

    async def complete(self, table: TableDescriptor, statement: statements.CreateTable) -> None:
        """Gives a table that is being created what its columns and key do not say."""
        changes = TableChanges(table)
        for column in statement.columns:
            if column.computed is not None:  # which may be an expression that is not allowed
                plain = replace(table.column(column.name), computed=None)
                with_computed(table, plain, column.computed)
            if column.identity is not None:
                made, clause = table.column(column.name), column.identity
                with at(column.type.position):
                    check_identity_type(made.type)
                    await add_identity(self._changer, changes, made, clause, statement.table)
        for column in statement.columns:
            for constraint in column.constraints:
                await self._constraint(changes, constraint)
        for element in statement.elements:
            await self._constraint(changes, element)
        await check_expressions(None, changes.table, self._changer.services.analytics)
        if changes.targets:
            await publish_finished(self._changer, changes)


async def publish_finished(changer: Changer, changes: TableChanges) -> None:
    """Publishes a table that only the transaction knows as its targets leave it."""
    table = changes.table
    for key in table.foreign_keys:
        if key.referenced_id == table.id:
            others = {*table.referenced_by, table.id}
            table = replace(table, referenced_by=tuple(sorted(others)))
            continue
        other = await changer.table(key.referenced_id)
        if table.id not in other.referenced_by:
            referrers = tuple(sorted({*other.referenced_by, table.id}))
            await changer.publish_next(replace(other, referenced_by=referrers))
    await changer.descriptors.publish(changer.transaction, table)


def _only_indexes(changes: TableChanges) -> bool:
    """Whether a change only adds indexes to a table that neither has nor meets foreign keys."""
    table = changes.table
    return not (table.foreign_keys or table.referenced_by) and all(
        isinstance(target.element, IndexElement) and target.present for target in changes.targets
    )


async def _write_again(changer: Changer, table: TableDescriptor) -> None:
    """Writes the rows that the transaction has written into the table's new indexes, too. Raises
    SQLError 23505."""
    transaction, codec, span = changer.transaction, RowRules.of(table).codec, table.primary_span
    while rows := await transaction.scan(span, limit=SLICE_ROWS):
        keys = [key for key, _ in rows]
        await Mutation(codec, deletes=keys).apply_in(transaction)
        written = Mutation(codec, keys=keys, bodies=[body for _, body in rows])
        written.insert_only()
        await written.apply_in(transaction)
        span = Span(keys[-1] + b"\0", span.end)
        await asyncio.sleep(0)


async def refuse_lost_references(changer: Changer, changes: TableChanges) -> None:
    """Raises SQLError 2BP01 where a change of a table leaves a foreign key without its index."""
    table = changes.table
    if table.dropped or not any(
        isinstance(target.element, IndexElement) and not target.present
        for target in changes.targets
    ):
        return
    for referrer_id in table.referenced_by:
        referrer = table if referrer_id == table.id else await changer.table(referrer_id)
        for key in referrer.foreign_keys:
            if key.referenced_id == table.id and referenced_index(table, key) is None:
                raise SQLError(
                    "2BP01",
                    f'cannot drop the index of table "{table.name}" to which foreign key '
                    f'"{key.name}" of table "{referrer.name}" refers',
                    hint=f'Run ALTER TABLE {referrer.name} DROP CONSTRAINT "{key.name}" first.',
                )


# SET CONSTRAINTS


async def set_constraints(
    services: Services,
    opened: OpenTransaction | None,
    database: str,
    statement: statements.SetConstraints,
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
        await check_keys(opened, deferrals)
    deferred.deferrals = deferrals
    return Result(tag=tag)


async def _tables_of(
    services: Services, transaction: Transaction, database: str, name: ObjectName
) -> list[int]:
    """The tables that have a deferrable foreign key of this name, or will have it when the
    transaction has committed, in the schema that is named or in `public`. Raises SQLError 42704
    where none has."""
    *schema, constraint = name.parts
    found = [
        table.id
        for table in await services.catalog.list_tables(transaction, database, *schema[-1:])
        for key in _as_it_will_be(transaction, table).foreign_keys
        if key.name == constraint and key.deferrable
    ]
    if not found:
        message = f'there is no deferrable constraint "{constraint}"'
        raise SQLError("42704", message, position=name.position)
    return found


def _as_it_will_be(transaction: Transaction, table: TableDescriptor) -> TableDescriptor:
    """The table behind the change of it that the transaction has begun."""
    draft = CatalogChanges.of(transaction).drafts.get(table.id)
    return draft.after if isinstance(draft, _Draft) else table


# TRUNCATE: of which tables, and by what way.
#
# By itself it is a schema change: the table gets new, empty indexes, at one moment, and feeds are
# told of a truncation. In a transaction that goes on, and of tables that refer to each other, it
# deletes the rows: the transaction sees the tables empty at once, ROLLBACK brings every row back,
# and feeds are told of each row that is deleted.

DELETED_ROWS_MAX = 20_000
"""Rows that TRUNCATE deletes one by one, some 0.1 s of them."""

SLICE_ROWS = 500
"""Rows that are deleted before the loop gets a turn."""


async def _truncated_tables(
    actor: Actor, statement: s.Truncate
) -> tuple[list[TableDescriptor], list[TableDescriptor]]:
    """The tables that a TRUNCATE names, and with CASCADE those that refer to them, each once.

    Raises SQLError 42P01, 42501 without DROP on one, and 0A000 where a table that is not among them
    refers to one.
    """
    found: dict[int, TableDescriptor] = {}
    for name in statement.tables:
        table = await find_table(actor.services, actor.reader, name, actor.database)
        if table is None:
            raise unknown_relation(name)
        await actor.need_table(table, Privilege.DROP)
        found[table.id] = table
    named = list(found.values())
    pending = list(named)
    while pending:
        table = pending.pop()
        for referrer_id in table.referenced_by:
            if referrer_id in found:
                continue
            referrer = await actor.services.catalog.descriptors.read(actor.reader, referrer_id)
            assert isinstance(referrer, TableDescriptor), (table, referrer)
            if not statement.cascade:
                raise _referred_to(table, referrer)
            await actor.need_table(referrer, Privilege.DROP)
            found[referrer_id] = referrer
            pending.append(referrer)
    return named, list(found.values())[len(named) :]


async def run_truncation(
    changer: Changer, statement: s.Truncate
) -> tuple[Sequence[TableDescriptor], str | None]:
    """Carries out the parts of a TRUNCATE that are no schema change. Returns the tables that are
    left to the schema changer, and a notice."""
    named, others = await _truncated_tables(changer, statement)
    tables = [*named, *others]
    for table in tables:
        refuse_other_writers(table)
        if table.id < FIRST_USER_ID:
            raise SQLError("42501", f'permission denied: "{table.name}" is part of the system')
    # Unlocking would be the only change of the transaction: a sequence is another.
    locked = [table for table in tables if statement.restart_identity and table.locked]
    if statement.restart_identity:
        for sequence in [
            each for t in tables for each in await owned_by(changer.transaction, t.id)
        ]:
            await change_sequence(changer, sequence, SequenceChange(position=1, restarts=True))
    together = any(set(table.referenced_by) - {table.id} for table in tables)
    left = tables
    if together or locked or statement.within:
        left = []
        for table in tables:
            await _delete(changer, table)
    cascades = [f'truncate cascades to table "{table.name}"' for table in others]
    return left, "; ".join(cascades) or None


async def _delete(changer: Changer, found: TableDescriptor) -> None:
    """Deletes the rows of a table. Raises SQLError 54000 where they are too many for that."""
    transaction = changer.transaction
    table = found
    if found.id not in changed_tables(transaction):
        table = await changer.scope.table(found.id, transaction.read_timestamp)
    rows = await transaction.scan(table.primary_span, limit=DELETED_ROWS_MAX + 1)
    if len(rows) > DELETED_ROWS_MAX:
        raise SQLError(
            "54000",
            f'table "{table.name}" has more than {DELETED_ROWS_MAX} rows, which TRUNCATE would '
            "delete one by one",
            hint="Truncate it alone, outside of a transaction, or delete the rows in parts.",
        )
    codec = RowRules.of(table).codec
    for start in range(0, len(rows), SLICE_ROWS):
        keys = [key for key, _ in rows[start : start + SLICE_ROWS]]
        await Mutation(codec, deletes=keys).apply_in(transaction)
        await asyncio.sleep(0)


def _referred_to(table: TableDescriptor, referrer: TableDescriptor) -> SQLError:
    return SQLError(
        "0A000",
        f'cannot truncate table "{table.name}", to which a foreign key refers',
        detail=f'Table "{referrer.name}" references "{table.name}".',
        hint=f'Truncate table "{referrer.name}" at the same time, or use TRUNCATE … CASCADE.',
    )
