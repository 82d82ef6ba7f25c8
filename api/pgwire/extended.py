"""The extended protocol: statements and portals by name, and pipelines that end in Sync."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import assert_never

from msgspec import Struct

from ...catalog.values.errors import SQLError
from ...kvlayer.errors import TakesWaiting
from ...sql import Apart, Result, Session, SessionState
from ...sql.session.immediate import Outcome
from ...sql.syntax.statements import CopyFrom, CopyTo
from ...sql.syntax.transaction_statements import FetchCursor
from . import replies
from .channel import Channel
from .copying import copy_in, copy_out
from .interruption import Guard
from .messages import (
    Bind,
    Close,
    Describe,
    Execute,
    Flush,
    Parse,
    Target,
    bind_again,
    parse_message,
)
from .output import Output
from .portals import (
    PORTALS_MAX,
    SKIPPED,
    PendingRows,
    Portal,
    RowEncoder,
    WireStatement,
    bind,
    hints_of,
    parameters_of,
    wire_statement,
)
from .wire_types import TEXT

TOGETHER_MAX = 128
VALUES_TOGETHER_MAX = 1024
"""Executes and their parameters that become one write: a few milliseconds of the loop."""

BOUND_AND_DESCRIBED = replies.BIND_COMPLETE + replies.NO_DATA

ExtendedMessage = Parse | Bind | Describe | Execute | Close | Flush


class FinishedRun(Struct, frozen=True):
    """A run at once within a transaction: until another takes its name, its portal may be asked
    about, or run again, as one that has ended."""

    statement: WireStatement
    bound: bytes
    outcome: Outcome

    def portal(self) -> Portal:
        """The portal as the ordinary way would have left it."""
        message = parse_message(ord("B"), self.bound)
        assert isinstance(message, Bind), message
        tag, columns = self.outcome.tag, self.outcome.columns
        result = Result(tag=tag, columns=columns, rows=() if columns else None)
        portal = Portal(self.statement, message, (), result=result, finished=True)
        if columns:
            portal.shape = portal.shaped(columns)
            portal.encode, portal.rows = portal.shape.encode, PendingRows(result)
        return portal


class Extended:
    """The statements and portals of one connection.

    What runs between two Syncs is one transaction, as in PostgreSQL. A statement that is the last
    before its Sync, and knows it because the Sync has already arrived, commits by itself.
    """

    def __init__(self, session: Session, channel: Channel, output: Output, guard: Guard) -> None:
        self._session = session
        self._channel = channel
        self._output = output
        self._guard = guard
        self._statements: dict[str, WireStatement] = {}
        self._portals: dict[str, Portal] = {}
        self.left: FinishedRun | None = None
        """The run of the portal without a name, where that was at once."""

    async def take(self, message: ExtendedMessage) -> None:
        """Carries a message out. Raises SQLError."""
        if self.left is not None:
            self._portals[""], self.left = self.left.portal(), None
        match message:
            case Parse():
                await self._parse(message)
            case Bind():
                if message.portal in self._portals:
                    await self._free(message.portal)
                self._bind(message)
            case Describe(target=Target.STATEMENT, name=name):
                await self._describe_statement(name)
            case Describe(name=name):
                await self._describe_portal(name)
            case Execute():
                await self._execute(message)
            case Close(target=Target.STATEMENT, name=name):
                self._statements.pop(name, None)
                self._session.prepared_names.forget(name)
                self._channel.write(replies.CLOSE_COMPLETE)
            case Close(name=name):
                await self._close_portal(name)
                self._channel.write(replies.CLOSE_COMPLETE)
            case Flush():
                self._channel.flush()
            case _:
                assert_never(message)

    async def sync(self) -> None:
        """Ends the pipeline: commits what it was. Raises SQLError where that fails."""
        try:
            if self._session.in_batch:
                await self._guard.run(self._session.end_batch())
        finally:
            if self._portals or self.left is not None:
                await self.end_portals()

    async def end_portals(self) -> None:
        """Portals end with their transaction."""
        ending = self._portals or self.left is not None
        if ending and self._session.state is SessionState.IDLE:
            await self.close_portals()

    async def close(self) -> None:
        """The connection is over. Its statements are the session's, which forgets them."""
        await self.close_portals()
        self._statements.clear()

    async def close_portals(self) -> None:
        self.left = None
        while self._portals:
            _, portal = self._portals.popitem()
            if portal.unfinished is not None:
                await portal.unfinished.close()

    # Statements

    async def _parse(self, message: Parse) -> None:
        names = self._session.prepared_names
        if message.name:
            names.check_new(message.name, message.text)
        hints = hints_of(message.oids)
        prepared = await self._guard.run(self._session.prepare(message.text, hints))
        names.keep(message.name, prepared)
        self._keep(message.name, wire_statement(prepared, message.oids))
        self._channel.write(replies.PARSE_COMPLETE)

    def _keep(self, name: str, statement: WireStatement) -> None:
        """What SQL has deallocated is let go of once it is as much as what is left."""
        names, kept = self._session.prepared_names, self._statements
        kept[name] = statement
        if len(kept) > 2 * len(names):
            for other in [other for other in kept if other not in names]:
                del kept[other]

    def statement(self, name: str) -> WireStatement:
        """The prepared statement of a name, one made by PREPARE too, until DEALLOCATE."""
        prepared = self._session.prepared_names.find(name)
        known = self._statements.get(name)
        if known is None or known.prepared is not prepared:
            known = wire_statement(prepared, ())
            self._keep(name, known)
        return known

    async def _describe_statement(self, name: str) -> None:
        statement = self.statement(name)
        columns = await self._guard.run(self._session.describe(statement.prepared))
        self._channel.write(replies.parameter_description(statement.oids))
        if columns:
            self._channel.write(replies.row_description(columns, (0,) * len(columns)))
        else:
            self._channel.write(replies.NO_DATA)

    # Portals

    @property
    def portal_count(self) -> int:
        """The number of portals beside those that are `left`."""
        return len(self._portals)

    def free_unnamed(self) -> None:
        """Ends the portal without a name, for a run at once. Raises TakesWaiting where something of
        its result is still to come."""
        portal = self._portals.get("")
        if portal is not None:
            if portal.unfinished is not None:
                raise TakesWaiting
            del self._portals[""]

    async def _free(self, name: str) -> None:
        """Ends the portal without a name, for the next. Raises SQLError 42P03 for another."""
        if name:
            raise SQLError("42P03", f'cursor "{name}" already exists')
        await self._close_portal(name)

    def _bind(self, message: Bind) -> None:
        portal = bind(message, self.statement(message.statement))
        if len(self._portals) >= PORTALS_MAX:
            raise SQLError("53400", f"a connection has at most {PORTALS_MAX} portals")
        self._portals[message.portal] = portal
        self._channel.write(replies.BIND_COMPLETE)

    def _portal(self, name: str) -> Portal:
        found = self._portals.get(name)
        if found is None:
            raise SQLError("34000", f'portal "{name}" does not exist')
        return found

    async def _describe_portal(self, name: str) -> None:
        if name not in self._portals:
            # A cursor of SQL is a portal, too, as drivers that declare one know.
            declared = self._session.cursors.columns(name)
            self._channel.write(replies.row_description(declared, (TEXT,) * len(declared)))
            return
        portal = self._portal(name)
        columns = self._session.columns_of(portal.statement.prepared)
        if columns is None:
            # Only a run can tell; and the Execute that follows takes its rows.
            await self._start(portal, executes_left=1)
            assert portal.result is not None
            columns = portal.result.columns
        if columns:
            portal.shape = portal.shaped(columns)
            self._channel.write(portal.shape.description)
        else:
            self._channel.write(replies.NO_DATA)

    async def _start(self, portal: Portal, *, executes_left: int, more: bool = False) -> None:
        """Runs the statement. `executes_left` of the pipeline's Executes ahead are its own; with
        `more` there are others that were taken already."""
        more = more or self._channel.machine.executes_ahead(executes_left)
        run = self._session.run(
            portal.statement.prepared, portal.parameters, more=more, streamed=True
        )
        result = portal.result = await self._guard.run(run)
        if not result.returns_rows:
            return
        if portal.shape is None or portal.shape.columns is not result.columns:
            portal.shape = portal.shaped(result.columns)
        portal.encode = portal.shape.encode
        if result.stream is None:
            portal.rows = PendingRows(result)

    async def _execute(self, message: Execute) -> None:
        portal = self._portal(message.portal)
        prepared = portal.statement.prepared
        statement = prepared.statement
        if statement is None:
            self._channel.write(replies.EMPTY_QUERY)
            return
        if isinstance(statement, CopyFrom | CopyTo):
            await self._copy(statement, prepared.text)
            return
        if portal.result is None:
            if prepared.together and not message.portal and await self._repeat(portal):
                return
            await self._start(portal, executes_left=0)
        else:
            self._session.refuse_failed()
            if portal.finished and not portal.result.returns_rows:
                raise SQLError("55000", f'portal "{message.portal}" cannot be run')
        await self._send(portal, max(message.row_limit, 0))

    async def _repeat(self, portal: Portal) -> bool:
        """Runs the portal and those that are bound alike behind it, as one write where that does
        the same. Says whether there are any."""
        machine, values = self._channel.machine, len(portal.parameters)
        most = min(TOGETHER_MAX, VALUES_TOGETHER_MAX // (values + 1))
        beginning = b"\0%b\0" % portal.bound.statement.encode()
        repetitions = machine.repetitions(beginning, most)
        if not repetitions:
            return False
        binds = [partial(bind_again, body, len(beginning), portal.bound) for body, _ in repetitions]
        described = [each for _, each in repetitions]
        try:
            await self._run_together(portal, binds, described)
        except Apart:
            await self._run_in_turn(portal, binds, described)
        if machine.buffered_bytes:
            await asyncio.sleep(0)
        return True

    async def _run_together(
        self, portal: Portal, binds: Sequence[Callable[[], Bind]], described: Sequence[bool]
    ) -> None:
        """Raises Apart, having told the client nothing."""
        statement = portal.statement
        try:
            further = [parameters_of(bound(), statement) for bound in binds]
        except SQLError as error:
            raise Apart from error  # the runs of those that are bound before it come before it
        run = self._session.run(statement.prepared, portal.parameters, further=further)
        result = portal.result = await self._guard.run(run)
        portal.finished = True
        self._output.complete(result)
        for known, other in zip(described, result.further, strict=True):
            self._channel.write(BOUND_AND_DESCRIBED if known else replies.BIND_COMPLETE)
            self._output.complete(other)

    async def _run_in_turn(
        self, portal: Portal, binds: Sequence[Callable[[], Bind]], described: Sequence[bool]
    ) -> None:
        """Raises SQLError for the run that fails: those behind it are left out."""
        await self._start(portal, executes_left=0, more=True)
        await self._send(portal, 0)
        for left, (bound, known) in enumerate(zip(binds, described, strict=True), 1 - len(binds)):
            await asyncio.sleep(0)
            await self._close_portal("")
            self._bind(bound())
            if known:
                await self._describe_portal("")
            portal = self._portal("")
            await self._start(portal, executes_left=0, more=left < 0)
            await self._send(portal, 0)

    async def _copy(self, statement: CopyFrom | CopyTo, text: str) -> None:
        more = self._channel.machine.executes_ahead(0)
        context = (self._session, self._channel, self._output, self._guard)
        if isinstance(statement, CopyFrom):
            await copy_in(*context, statement, text, more=more)
        else:
            await copy_out(*context, statement, text, more=more)

    async def _send(self, portal: Portal, limit: int) -> None:
        result = portal.result
        assert result is not None
        if portal.encode is None:
            portal.finished = True
            self._output.complete(result)
            return
        count = await self._take_rows(portal, result, portal.encode, limit)
        if limit and count == limit:
            self._channel.write(replies.PORTAL_SUSPENDED)
            portal.suspended = True
            return
        portal.finished = True
        tag = f"SELECT {count}" if portal.suspended else None
        self._output.complete(result, tag)

    async def _take_rows(
        self, portal: Portal, result: Result, encode: RowEncoder, limit: int
    ) -> int:
        if result.stream is not None:
            return await self._output.stream(result, encode, limit)
        assert portal.rows is not None, portal
        return await self._output.rows(portal.rows, encode, limit)

    def has_portal(self, name: str) -> bool:
        return name in self._portals

    async def move(self, statement: FetchCursor) -> None:
        """Carries out MOVE of a portal, which `Cursor.forward` of asyncpg sends. Raises SQLError
        55000 where the portal has no rows, or they lie behind."""
        portal, count = self._portals[statement.name], statement.count
        if statement.absolute or (count is not None and count < 1):
            raise SQLError("55000", "cursor can only scan forward")
        if portal.result is None:
            await self._start(portal, executes_left=0)
        self._session.refuse_failed()
        result = portal.result
        if result is None or portal.encode is None:
            raise SQLError("55000", f'portal "{statement.name}" has no rows')
        moved = await self._take_rows(portal, result, SKIPPED, count or 0)
        portal.suspended = True
        self._channel.write(replies.command_complete(f"MOVE {moved}"))

    async def _close_portal(self, name: str) -> None:
        """Ends the portal, and what is still to come of its result."""
        portal = self._portals.pop(name, None)
        if portal is not None and portal.unfinished is not None:
            await portal.unfinished.close()
