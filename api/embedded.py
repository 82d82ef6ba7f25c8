"""The API in process: `tailrace.open(path)`, and `await tailrace.aopen(path)` for asyncio programs.

    with tailrace.open("data") as db:
        db.sql("CREATE TABLE orders (id INT8 PRIMARY KEY, note STRING)")
        db.sql("CREATE CHANGEFEED FOR TABLE orders INTO 'duckdb:///mirror.duckdb'")
        db.sql("INSERT INTO orders VALUES ($1, $2)", (1, "first"))
        mirror = db.mirror("mirror.duckdb")
        mirror.wait()
        print(mirror.sql("SELECT * FROM orders"))
        with db.transaction() as txn:
            txn.sql("DELETE FROM orders WHERE id = $1", (1,))

`Database` is `AsyncDatabase` with its loop on a thread of its own: each method blocks until the
result is there. Every error of a statement is a `SQLError`.
"""

from __future__ import annotations

import atexit
import threading
import weakref
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import aclosing, asynccontextmanager, contextmanager
from os import PathLike
from types import TracebackType

import pyarrow as pa

from ..catalog.descriptors.names import quote_identifier
from ..catalog.values.column_types import Datum
from ..catalog.values.errors import SQLError
from ..changefeed.pipeline.live import LiveFeed
from ..kvlayer.clock import Timestamp, format_timestamp
from ..sql import ROWS_PER_TRANSACTION, Batches, LoadMode, LoadReport, Row
from ..sql import Result as StatementResult
from ..sql import Session as StatementSession
from .keyspaces import AsyncKeyspace, Keyspace
from .loop_thread import LoopThread
from .node import Node, NodeOptions
from .result import Result


class AsyncMirror:
    """A DuckDB mirror, readable while it is fed. Each query is one read-only transaction."""

    def __init__(self, node: Node, location: str) -> None:
        self._node = node
        self._location = location

    async def sql(self, text: str, params: Sequence[Datum] = ()) -> pa.Table:
        """The rows of a query in DuckDB's SQL. Raises SQLError 25006 on a statement that writes."""
        return await self._node.read_mirror(self._location, text, params)

    async def wait(self, until: Timestamp | None = None) -> Timestamp:
        """Waits until every feed into this mirror holds all that is committed by now.

        With `until`, until it holds all that was committed at or below that timestamp. Returns the
        timestamp that was waited for. Raises FeedStopped when a feed ends before that.
        """
        return await self._node.wait_for_mirror(self._location, until)


class AsyncSession:
    """Statements one after the other, in transactions apart from every other session's."""

    def __init__(self, session: StatementSession) -> None:
        self._session = session

    async def sql(self, text: str, params: Sequence[object] = ()) -> Result:
        """Runs the statements of `text` and returns the last one's result. Raises SQLError."""
        return await _last(await self._session.execute(text, params))

    async def close(self) -> None:
        """Rolls back what is open."""
        await self._session.close()

    async def __aenter__(self) -> AsyncSession:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()


class AsyncDatabase:
    """A store in this process, on this event loop."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self._session = node.session()

    async def sql(self, text: str, params: Sequence[object] = ()) -> Result:
        """Runs the statements of `text` and returns the last one's result. Raises SQLError.

        All calls share one session; `session` makes another, for a transaction of its own.
        """
        return await _last(await self._session.execute(text, params))

    def session(self, *, database: str | None = None) -> AsyncSession:
        """A session of its own. Close it, or use it as a context."""
        return AsyncSession(self.node.session(database=database))

    @asynccontextmanager
    async def transaction(
        self, *, database: str | None = None
    ) -> AsyncGenerator[AsyncSession, None]:
        """A session in a transaction: committed at the end of the context, rolled back by an error.

        A commit that meets another's raises SQLError 40001, and nothing of it has happened: run the
        context again.
        """
        async with self.session(database=database) as session:
            await session.sql("BEGIN")
            yield session
            await session.sql("COMMIT")

    async def load(
        self,
        table: str,
        data: Batches,
        *,
        mode: LoadMode = LoadMode.ERROR,
        rows_per_transaction: int = ROWS_PER_TRANSACTION,
    ) -> LoadReport:
        """Bulk-loads Arrow into a table, in transactions of `rows_per_transaction` rows."""
        return await self.node.load(
            table, data, mode=mode, rows_per_transaction=rows_per_transaction
        )

    async def changefeed(self, *tables: str, **options: FeedOption) -> AsyncGenerator[Row, None]:
        """Streams (table, key, value) rows of a sinkless changefeed, until it is closed.

        Options are those of CREATE CHANGEFEED: `resolved=True`, `envelope="row"`,
        `cursor=result.commit_timestamp`; one that is False is not given.
        """
        result = (await self._session.execute(changefeed_statement(tables, options)))[-1]
        assert result.stream is not None, result
        async with aclosing(result.stream) as rows:
            async for row in rows:
                yield row

    def mirror(self, location: str) -> AsyncMirror:
        """A mirror, by the path or the URI that its changefeed was given."""
        return AsyncMirror(self.node, location)

    def keyspace(self, name: str) -> AsyncKeyspace:
        """A raw keyspace, which CREATE KEYSPACE has made."""
        return AsyncKeyspace(self.node, name)

    def feed(self, job_id: int) -> LiveFeed:
        """A changefeed as this process knows it: its state, its latencies, and who waits for it."""
        return self.node.feed(job_id)

    async def close(self) -> None:
        await self._session.close()
        await self.node.close()

    async def __aenter__(self) -> AsyncDatabase:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()


async def _last(results: Sequence[StatementResult]) -> Result:
    """Returns the last result. Raises SQLError 0A000 where its rows have no end."""
    result = results[-1]
    if result.stream is not None:
        await result.close()
        raise SQLError(
            "0A000",
            "a changefeed without a sink has no result as a whole",
            hint="Iterate over changefeed(…), or name a sink: INTO '…'.",
        )
    return Result(result)


async def aopen(path: str | PathLike[str], options: NodeOptions | None = None) -> AsyncDatabase:
    """Opens the store in the folder `path`, or a new one in memory for ":memory:".

    Raises NodeRefused when another process serves the folder or another version wrote it.
    """
    return AsyncDatabase(await Node.open(path, options or NodeOptions()))


FeedOption = str | bool | Timestamp
_TIMES = ("cursor", "end_time")


def changefeed_statement(tables: Sequence[str], options: dict[str, FeedOption]) -> str:
    """CREATE CHANGEFEED without a sink, for tables and options given as Python values. Raises
    TypeError for a value that is none of an option."""
    clauses = []
    for name, value in options.items():
        if value is True:
            clauses.append(name)
        elif value is False:
            continue
        elif isinstance(value, int) and name in _TIMES:
            clauses.append(f"{name} = '{format_timestamp(Timestamp(value))}'")
        elif isinstance(value, str):
            quoted = value.replace("'", "''")
            clauses.append(f"{name} = '{quoted}'")
        else:
            wanted = "a text, or a commit timestamp" if name in _TIMES else "a text or a bool"
            raise TypeError(f"changefeed option {name} is {wanted}, not {value!r}")
    targets = ", ".join(
        ".".join(quote_identifier(part) for part in name.split(".")) for name in tables
    )
    suffix = f" WITH {', '.join(clauses)}" if clauses else ""
    return f"CREATE CHANGEFEED FOR TABLE {targets}{suffix}"


class Mirror:
    """`AsyncMirror` for programs without a loop."""

    def __init__(self, thread: LoopThread, mirror: AsyncMirror) -> None:
        self._thread = thread
        self._mirror = mirror

    def sql(self, text: str, params: Sequence[Datum] = ()) -> pa.Table:
        return self._thread.outcome(self._mirror.sql(text, params))

    def wait(self, until: Timestamp | None = None) -> Timestamp:
        return self._thread.outcome(self._mirror.wait(until))


class Session:
    """`AsyncSession` for programs without a loop."""

    def __init__(self, thread: LoopThread, session: AsyncSession) -> None:
        self._thread = thread
        self._session = session

    def sql(self, text: str, params: Sequence[object] = ()) -> Result:
        return self._thread.outcome(self._session.sql(text, params))

    def close(self) -> None:
        """Rolls back what is open. Nothing is open any more once its database is closed."""
        if not self._thread.closed:
            self._thread.run(self._session.close())

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class Database:
    """`AsyncDatabase` for programs without a loop, for any number of threads.

    Each thread has a session of its own for `sql`, so that a BEGIN of one is none of another. A
    database that its program leaves open is closed when the interpreter exits.
    """

    def __init__(self, thread: LoopThread, database: AsyncDatabase) -> None:
        self._thread = thread
        self._database = database
        self._closed = False
        self._of_thread = threading.local()
        # The engine and DuckDB end with their threads: an interpreter that exits under them aborts.
        atexit.register(self.close)

    def sql(self, text: str, params: Sequence[object] = ()) -> Result:
        """Runs the statements of `text` and returns the last one's result. Raises SQLError."""
        session: Session | None = getattr(self._of_thread, "session", None)
        if session is None:
            session = self._of_thread.session = self.session()
            # What a thread left open is rolled back when the thread has ended.
            weakref.finalize(session, _close_later, self._thread, session._session).atexit = False
        return session.sql(text, params)

    def session(self, *, database: str | None = None) -> Session:
        """A session of its own. Close it, or use it as a context."""
        return Session(self._thread, self._thread.run(self._session(database)))

    @contextmanager
    def transaction(self, *, database: str | None = None) -> Generator[Session, None, None]:
        """As `AsyncDatabase.transaction`."""
        with self.session(database=database) as session:
            session.sql("BEGIN")
            yield session
            session.sql("COMMIT")

    def load(
        self,
        table: str,
        data: pa.Table | pa.RecordBatch,
        *,
        mode: LoadMode = LoadMode.ERROR,
        rows_per_transaction: int = ROWS_PER_TRANSACTION,
    ) -> LoadReport:
        """Bulk-loads Arrow into a table, in transactions of `rows_per_transaction` rows."""
        loading = self._database.load(
            table, data, mode=mode, rows_per_transaction=rows_per_transaction
        )
        return self._thread.outcome(loading)

    def changefeed(self, *tables: str, **options: FeedOption) -> Generator[Row, None, None]:
        """Rows as they come; closing the iterator ends the feed."""
        rows = self._database.changefeed(*tables, **options)
        try:
            while True:
                try:
                    yield self._thread.outcome(_next(rows))
                except StopAsyncIteration:
                    return
        finally:
            if not self._closed:  # or else the store has ended it
                self._thread.run(_close(rows))

    def mirror(self, location: str) -> Mirror:
        """A mirror, by the path or the URI that its changefeed was given."""
        return Mirror(self._thread, self._database.mirror(location))

    def keyspace(self, name: str) -> Keyspace:
        """A raw keyspace, which CREATE KEYSPACE has made."""
        return Keyspace(self._thread, self._database.keyspace(name))

    def close(self) -> None:
        """Closes the store and ends its thread. Closing twice is closing once."""
        if self._closed:
            return
        self._closed = True
        atexit.unregister(self.close)
        try:
            self._thread.run(self._database.close())
        finally:
            self._thread.close()

    def __enter__(self) -> Database:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    async def _session(self, database: str | None) -> AsyncSession:
        return self._database.session(database=database)


def _close_later(thread: LoopThread, session: AsyncSession) -> None:
    if not thread.closed:
        thread.submit(session.close())


async def _next(rows: AsyncGenerator[Row, None]) -> Row:
    return await anext(rows)


async def _close(rows: AsyncGenerator[Row, None]) -> None:
    await rows.aclose()


def open(path: str | PathLike[str], options: NodeOptions | None = None) -> Database:
    """As `aopen`, on a loop of its own in a thread of its own."""
    thread = LoopThread()
    try:
        return Database(thread, thread.run(aopen(path, options)))
    except BaseException:
        thread.close()
        raise
