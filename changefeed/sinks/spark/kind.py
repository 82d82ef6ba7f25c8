"""The kind of sink behind `spark+…`: judges a URI, and runs a feed by an application of Spark."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from ....catalog.descriptors.descriptor import TableDescriptor
from ....catalog.values.errors import SQLError
from ....kvlayer.process.offload import Offload
from ....kvlayer.settings import Settings
from ..kind import LocalKind
from ..protocol import PastUnknown, SinkProgress, SinkRefused
from ..worker import WorkerFeed, WorkerKind
from ..worker_tokens import Worker, WorkerTokens
from .application import LakeServer, run_lake
from .java import why_no_spark
from .lake_record import LakeRecord
from .location import LakeLocation
from .masters import MASTERS, check_master

OPTIONS = frozenset(
    {
        "cursor",
        "initial_scan",
        "initial_scan_only",
        "min_checkpoint_frequency",
        "no_initial_scan",
        "paused",
    }
)
"""Options of a lake's feed. Rows bear their operation and commit timestamp in any case."""


class SparkKind(WorkerKind, LocalKind):
    """Appends every change of one table to a lake, by a PySpark application that it supervises.

    Each run has a token of its own, for the feed's owner and table. A lake outlives its feed, whose
    position ends by its age.
    """

    obeys = OPTIONS

    def __init__(
        self,
        roots: Sequence[Path],
        offload: Offload,
        server: LakeServer | None,
        tokens: WorkerTokens,
        settings: Settings,
    ) -> None:
        self._roots = tuple(roots)
        self._lane = offload.lane("spark")
        self._server = server
        self._tokens = tokens
        self._settings = settings

    async def validate(self, uri: str, tables: Sequence[TableDescriptor], *, store_id: str) -> None:
        location = self._location(uri)
        if len(tables) > 1:
            raise SQLError(
                "0A000", "a lake takes one table", hint="Create a changefeed for each table."
            )
        self._asked()
        missing = await self._lane.run(partial(_obstacle, location.path))
        if missing is not None:
            raise SQLError("58030", f"a changefeed into a lake cannot run: {missing}")

    def path_of(self, uri: str) -> Path:
        return LakeLocation.read(uri, self._roots).path

    async def run(self, feed: WorkerFeed) -> None:
        try:
            location = self._location(feed.uri)
        except SQLError as error:  # the list of masters, or the roots, were others before
            raise SinkRefused(error.message) from error
        name = f"_checkpoint_{feed.identity.job_id}.position"
        record = LakeRecord(location.path / name, self._lane)
        seen = await record.read()
        if seen is not None and not await feed.holds(seen):
            raise PastUnknown(feed.identity.store_id, seen)
        await record.write(feed.position())

        async def report(progress: SinkProgress, rows: int) -> None:
            await record.write(feed.position())
            await feed.report(progress, rows)

        recorded = replace(feed, report=report)
        server = self._asked()
        with self._tokens.lent(Worker(feed.user, feed.table_id)) as token:
            await run_lake(location, recorded, server, token)

    def _location(self, uri: str) -> LakeLocation:
        location = LakeLocation.read(uri, self._roots)
        check_master(location.master, self._settings.get(MASTERS))
        return location

    def _asked(self) -> LakeServer:
        if self._server is None:
            raise SinkRefused(
                "a lake is written by an application that asks a server: run `tailrace serve`"
            )
        return self._server


def _obstacle(path: Path) -> str | None:
    """The reason for which no lake can be written there, if so."""
    missing = why_no_spark()
    if missing is not None:
        return missing
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        return f"folder {path} cannot be made: {error.strerror}"
    if not os.access(path, os.W_OK | os.X_OK):
        return f"folder {path} cannot be written"
    return None
