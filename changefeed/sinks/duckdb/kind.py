"""The kind of sink behind `duckdb:///`: checks URIs, opens sinks, releases tables."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TypeVar

import duckdb

from ....catalog.descriptors.descriptor import TableDescriptor
from ....catalog.values.errors import SQLError
from ....kvlayer.history import StorePosition
from ...contract.options import PIPELINE_OPTIONS
from ..kind import LocalKind, SinkKind
from ..locations import MirrorTarget
from ..protocol import FeedIdentity, Holds, Sink, SinkContext, SinkError, SinkRefused
from .errors import MirrorHeld, file_error
from .files import DuckDBFiles
from .log_ownership import check_log_name, log_name
from .mirror_file import MirrorFile, run_whole
from .orphans import Lives, release_jobs, release_orphans
from .ownership import check_name, has_schema
from .progress_table import ProgressRow
from .reading.interruption import in_lane
from .reading.snapshot import InLane, MirrorSnapshot, begin_snapshot
from .sink import DuckDBSink
from .table_schema import mirror_name, mirror_names, shown_name

T = TypeVar("T")


class DuckDBKind(SinkKind, LocalKind):
    """The kind of sink that mirrors tables into a DuckDB file of this node."""

    transactional = True
    follows_schema = True
    obeys = PIPELINE_OPTIONS | {"publish", "schema"}

    def __init__(self, files: DuckDBFiles, lives: Lives) -> None:
        """`lives` says of a job that owns a mirror table whether it may still run."""
        self._files = files
        self._lives = lives

    async def validate(self, uri: str, tables: Sequence[TableDescriptor], *, store_id: str) -> None:
        """Raises SQLError when a new feed of `tables` may not go to `uri`. Makes no file.

        What jobs that are over still own in the file is released.
        """
        target = self._files.locations.target(uri)
        try:
            names = mirror_names(tables, target.table, target.schema)
            if target.path.exists():
                await self._check_file(target, names, store_id)
        except SinkRefused as error:
            raise SQLError("55000", str(error)) from error
        except MirrorHeld as error:
            raise SQLError("55006", str(error), hint="Close it there, then try again.") from error
        except SinkError as error:
            raise SQLError("58030", str(error)) from error

    async def _check_file(
        self, target: MirrorTarget, names: Mapping[int, str], store_id: str
    ) -> None:
        async with self._files.using(target.path) as file:
            try:
                mirrors, logs = _names(target, list(names.values()))
                await release_orphans(file, [*mirrors, *logs], self._lives, store_id=store_id)
                await run_whole(file.lane, partial(_check, file, mirrors, logs))
            except duckdb.Error as error:
                raise SinkError(f"mirror file {target.path} cannot be read: {error}") from error

    def path_of(self, uri: str) -> Path:
        return self._files.locations.target(uri).path

    def reserved(self, uri: str, table_names: Iterable[str]) -> frozenset[str]:
        """The mirror tables, file and all."""
        target = self._files.locations.target(uri)
        tables = list(table_names) if target.table is None else [target.table]
        mirrors, logs = _names(target, [mirror_name(target.schema, table) for table in tables])
        return frozenset(
            f'mirror table "{shown_name(name).lower()}" of {target.path}'
            for name in (*mirrors, *logs)
        )

    def wants_previous(self, uri: str) -> bool:
        """Whether a log shows the rows before changes."""
        return self._files.locations.target(uri).mode.holds_changes

    def create(self, uri: str, context: SinkContext) -> Sink:
        return DuckDBSink(
            self._files.locations.target(uri), self._files, context, lives=self._lives
        )

    @asynccontextmanager
    async def snapshot(self, uri: str, job_id: int) -> AsyncIterator[tuple[MirrorSnapshot, InLane]]:
        """The mirror as one commit left it, and what runs calls on its thread, for the time of the
        block. Raises SinkError and SinkRefused."""
        target = self._files.locations.target(uri)
        async with self._files.using(target.path) as file, self._files.read_lane() as lane:
            cursor = file.cursor()
            try:
                run: InLane = partial(in_lane, lane, cursor)
                yield await run(partial(begin_snapshot, cursor, job_id)), run
            except duckdb.Error as error:
                file.note_error(error)
                raise file_error(target.path, error) from error
            finally:
                # Which ends the transaction.
                await run_whole(lane, partial(file.close_cursor, cursor))

    async def release(self, uri: str, identity: FeedIdentity, holds: Holds) -> None:
        """The job will never come back: another feed may have the names of its mirror tables.

        The tables stay as they are until then. Nothing is done where nothing can be released: the
        file is gone, is another store's by now or no mirror at all, or lies outside of the roots as
        they are now; then whoever opens it as a mirror again does it. Raises SinkError when the
        file cannot be opened now.
        """
        try:
            path = self.path_of(uri)
        except SQLError:
            return
        if not path.exists():
            return
        try:
            seen = await self.seen(path, identity)
            if seen is None or await holds(seen):
                await self.free(path, identity)
        except SinkRefused:
            return

    async def seen(self, path: Path, identity: FeedIdentity) -> StorePosition | None:
        """How much of the store's log a mirror file has seen of the feed. Raises as `free` does."""
        return await self._in_file(path, partial(_seen, identity))

    async def free(self, path: Path, identity: FeedIdentity) -> None:
        """Releases the feed's tables in a mirror file. Raises SinkRefused where it is none of this
        store."""
        await self._in_file(
            path, lambda file: release_jobs(file, [identity.job_id], identity.store_id)
        )

    async def _in_file(self, path: Path, call: Callable[[MirrorFile], T]) -> T:
        async with self._files.using(path) as file:
            try:
                return await run_whole(file.lane, partial(call, file))
            except duckdb.Error as error:
                file.note_error(error)
                raise file_error(file.path, error) from error


def _names(target: MirrorTarget, names: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """The names of a feed's mirror tables and of its logs."""
    mode = target.mode
    return names if mode.holds_rows else (), [*map(log_name, names)] if mode.holds_changes else ()


def _seen(identity: FeedIdentity, file: MirrorFile) -> StorePosition | None:
    with file.using_cursor() as cursor:
        stand = ProgressRow(identity).read(cursor) if has_schema(cursor) else None
    return None if stand is None else stand.position


def _check(file: MirrorFile, mirrors: Sequence[str], logs: Sequence[str]) -> None:
    with file.using_cursor() as cursor:
        ours = has_schema(cursor)
        for name in mirrors:
            check_name(cursor, name, job_id=None, ours=ours)
        for name in logs:
            check_log_name(cursor, name, None)
