"""The kind of sink behind `postgres://`: checks URIs, opens sinks, releases tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ....catalog.descriptors.descriptor import TableDescriptor
from ....catalog.values.errors import SQLError
from ..kind import SinkKind
from ..protocol import (
    FeedIdentity,
    Holds,
    Sink,
    SinkContext,
    SinkError,
    SinkRefused,
    cannot_connect,
)
from ..uri import redacted_uri
from .connection import (
    Connection,
    cancellable,
    connected,
    in_transaction,
)
from .location import PostgresTarget, parse_target
from .own_tables import Lives, check_name, prepared, release_job
from .progress_row import ProgressRow
from .sink import PostgresSink
from .table_schema import check_columns


class PostgresKind(SinkKind):
    """The kind of sink that mirrors tables into a database of PostgreSQL."""

    transactional = True
    columnar = False
    follows_schema = True

    def __init__(self, lives: Lives) -> None:
        """`lives` says of a job that owns a mirror table whether it may still run."""
        self._lives = lives

    async def validate(self, uri: str, tables: Sequence[TableDescriptor], *, store_id: str) -> None:
        """Raises SQLError when a new feed of `tables` may not go to `uri`: also where the database
        does not answer. Leaves nothing behind."""
        target = parse_target(uri)
        try:
            names = target.names((table.id, table.name) for table in tables)
            for table in tables:
                check_columns(table)
            async with connected(target) as connection:
                await cancellable(
                    connection, self._check(connection, target, [*names.values()], store_id)
                )
        except SinkRefused as error:
            raise SQLError("55000", str(error)) from error
        except SinkError as error:
            raise cannot_connect(error) from error

    async def _check(
        self, connection: Connection, target: PostgresTarget, names: Sequence[str], store_id: str
    ) -> None:
        found = await connection.execute(
            "SELECT pg_catalog.has_schema_privilege(oid, 'CREATE'), "
            "pg_catalog.has_database_privilege(current_database(), 'CREATE') "
            "FROM pg_catalog.pg_namespace WHERE nspname = %s",
            [target.schema],
        )
        rights = await found.fetchone()
        if rights is None:
            raise SinkRefused(f'{target.shown}: schema "{target.schema}" does not exist')
        ready = await prepared(connection)
        if not rights[0] or not (ready or rights[1]):
            what = f'tables in schema "{target.schema}"' if not rights[0] else "schema _tailrace"
            raise SinkRefused(f"{target.shown}: user {target.user} may not create {what}")
        for name in names:
            await check_name(
                connection,
                target.schema,
                name,
                prepared=ready,
                identity=None,
                store_id=store_id,
                lives=self._lives,
            )

    def reserved(self, uri: str, table_names: Iterable[str]) -> frozenset[str]:
        """The mirror tables, database and all."""
        target = parse_target(uri)
        names = table_names if target.table is None else [target.table]
        return frozenset(
            f'mirror table "{target.schema}.{name}" of {target.shown}' for name in names
        )

    def create(self, uri: str, context: SinkContext) -> Sink:
        return PostgresSink(parse_target(uri), context, lives=self._lives)

    async def release(self, uri: str, identity: FeedIdentity, holds: Holds) -> None:
        """The job will never come back: another feed may have the names of its mirror tables.

        A server that does not answer holds nobody up: whoever wants one of the names later finds
        the job over.
        """
        try:
            async with connected(parse_target(uri)) as connection:
                await cancellable(connection, _release(connection, identity, holds))
        except (SQLError, SinkError, SinkRefused):
            return

    def hosts(self, uri: str) -> Sequence[str]:
        return (parse_target(uri).host,)

    def redacted(self, uri: str) -> str:
        return redacted_uri(uri)


async def _release(connection: Connection, identity: FeedIdentity, holds: Holds) -> None:
    async def release() -> None:
        stand = await ProgressRow(identity).read(connection)
        if stand is None or await holds(stand.position):
            await release_job(connection, identity)

    if await prepared(connection):
        await in_transaction(connection, release)
