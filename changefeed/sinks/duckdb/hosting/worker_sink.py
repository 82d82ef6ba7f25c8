"""A mirror's sink in the feed worker, as the pipeline of its feed uses it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack, suppress
from functools import partial
from typing import Any

from .....catalog.descriptors.descriptor import TableDescriptor
from .....catalog.rows.row_codec import RowUnreadable
from .....kvlayer.worker import Peer, WorkerGone
from .....schemafeed.table_events import TableEvent
from ....contract.changes import ChangeBatch, Form, StageTimes
from ...locations import MirrorTarget
from ...protocol import Sink, SinkContext, SinkError, SinkProgress, SinkStand
from .host import SentContext
from .messages import DescriptorNumbers
from .mirror_worker import MirrorWorker, worker_errors


class WorkerSink(Sink):
    """Stands for a `DuckDBSink` in the worker, and does what that does.

    What is emitted goes on its way at once, and no further than the shared memory has room: the
    rest waits here, charged to the feed's budget of memory until it is flushed, so that a worker
    which does not keep up stops the feed's reader. A worker that dies fails the sink.
    """

    def __init__(
        self, uri: str, target: MirrorTarget, context: SinkContext, worker: MirrorWorker
    ) -> None:
        self._uri = uri
        self._target = target
        self._worker = worker
        self._freshen = context.freshen
        self._position = context.position
        self._job_id = context.identity.job_id
        self._sent = SentContext(
            identity=context.identity,
            options=context.options,
            kept=context.kept,
            begins=dict(context.begins),
            freshens=context.freshen is not None,
        )
        self._number = worker.number()
        self._peer: Peer | None = None
        self._descriptors = DescriptorNumbers(partial(self._tell, "describe"))
        self._held = ExitStack()
        self._unflushed: list[StageTimes] = []

    @property
    def form(self) -> Form:
        """The worker decodes, unless it has met what is no row."""
        return Form.COLUMNS if self._job_id in self._worker.unreadable else Form.BODIES

    async def stand(self) -> SinkStand | None:
        """See `DuckDBSink.stand`."""
        self._held.enter_context(self._worker.using(self._target.path))
        self._held.enter_context(self._worker.freshened(self._number, self._freshen))
        self._peer = await self._worker.peer()
        self._tell("create", self._uri, self._sent)
        stand: SinkStand | None = await self._call("stand")
        return stand

    async def open(self, tables: Sequence[TableDescriptor]) -> None:
        """See `DuckDBSink.open`."""
        for table in tables:  # by which the sink will know them
            self._descriptors.of(table)
        await self._call("open", list(tables))

    def emit(self, batch: ChangeBatch) -> None:
        self._unflushed.append(batch.stages)
        self._tell("emit", self._descriptors.sent_batch(batch))

    def change_schema(self, event: TableEvent) -> None:
        self._tell("change_schema", self._descriptors.sent_event(event))

    async def flush(self, progress: SinkProgress | None) -> None:
        unflushed, self._unflushed = self._unflushed, []
        try:
            sunk: int = await self._call("flush", progress, self._position())
        except RowUnreadable as error:
            self._worker.unreadable.add(self._job_id)
            raise SinkError(f"mirror file {self._target.path}: {error}") from error
        for stages in unflushed:
            stages.sunk = sunk

    async def close(self) -> None:
        try:
            if self._peer is not None:
                with suppress(WorkerGone):
                    await self._peer.call("close", self._number)
        finally:
            self._held.close()

    def _tell(self, name: str, *arguments: object) -> None:
        assert self._peer is not None, "`stand` begins"
        self._peer.tell(name, self._number, *arguments)

    async def _call(self, name: str, *arguments: object) -> Any:
        assert self._peer is not None, "`stand` begins"
        with worker_errors():
            return await self._peer.call(name, self._number, *arguments)
