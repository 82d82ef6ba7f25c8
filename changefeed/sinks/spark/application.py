"""One run of an application of Spark: a process, what it reports, and its end.

It prints a line of JSON for each batch that is done: `{"resolved": …, "rows": …}`. Its
standard input is held open: when this process dies, however it dies, the application reads the end
of it and stops. So a server that was killed leaves no second writer to the one it starts again. The
first line there is what it shows to the server: neither its command line nor its environment, which
is built from a few variables of this process, holds a secret.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from ....kvlayer.clock import Timestamp
from ....kvlayer.process.child_environment import child_environment
from ....kvlayer.process.child_output import next_line
from ...contract.options import ScanChoice
from ..protocol import SinkError, SinkProgress, SinkRefused
from ..worker import WorkerFeed
from .location import LakeLocation

LAKE_MODULE = "tailrace.changefeed.spark.lake"

STOP_SECONDS = 20.0
"""How long the application may take to end its batch before it is killed."""

SAYS = "tailrace: "
"""The beginning of the application's own line in its standard error; Spark writes there too."""

ERROR_LINES = 30
"""Lines of the application's standard error that are kept, for the job's error."""

ERROR_CHARACTERS_MAX = 2_000
"""Characters of such a line in the job's error."""

SCHEMA_CHANGED = 3
"""The application's exit code when the table was altered: the next attempt goes on with the new
columns."""

CANNOT_GO_ON = 4
"""The application's exit code when no other attempt will do better: the table was dropped, for
instance."""


ENVIRONMENT = ("JAVA_HOME", "SPARK_HOME", "SPARK_LOCAL_IP", "PYSPARK_PYTHON")
"""Variables that an application inherits beside those of every child: where its programs are."""


def spark_environment(own: Mapping[str, str]) -> dict[str, str]:
    """The environment of an application, and of whatever it starts.

    Spark's workers run this interpreter, unless the server was told which: theirs may be elsewhere.
    """
    return {"PYSPARK_PYTHON": sys.executable, **child_environment(own, *ENVIRONMENT)}


class _Report(msgspec.Struct):
    """A batch is done: everything at or below `resolved`, with so many rows."""

    resolved: int
    rows: int


@dataclass(frozen=True, slots=True)
class LakeServer:
    """The address of this server for the application, and its certificate (PEM) where it speaks
    TLS."""

    url: str
    certificate: str | None = None

    def told(self, token: str) -> dict[str, str]:
        """The secrets and facts that an application is given, and shows to the server."""
        told = {"token": token}
        if self.certificate is not None:
            told["certificate"] = self.certificate
        return told


class SparkApplication:
    """One process of an application: `module`, by its `arguments`. `told` is what it is shown in
    its standard input, and `note` hears of each batch: what is resolved with it, and its rows."""

    def __init__(
        self,
        module: str,
        arguments: Sequence[str],
        told: Mapping[str, object],
        token: str,
        note: Callable[[Timestamp, int], Awaitable[None]],
    ) -> None:
        self._command = [sys.executable, "-m", module, *arguments]
        self._told = told
        self._token = token
        self._note = note
        self._errors: deque[str] = deque(maxlen=ERROR_LINES)

    async def run(self) -> int:
        """Runs the application and returns its exit code. Raises what `note` raises."""
        process = await asyncio.create_subprocess_exec(
            *self._command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=spark_environment(os.environ),
        )
        try:
            await self._introduce(process)
            async with asyncio.TaskGroup() as group:
                group.create_task(self._follow(process))
                group.create_task(self._gather_errors(process))
            return await process.wait()
        except BaseExceptionGroup as failures:
            raise failures.exceptions[0] from None
        finally:
            await _stop(process)

    def check(self, code: int) -> None:
        """Raises SinkError, which another attempt may mend, and SinkRefused, which none will, for
        the exit code of what has failed."""
        if code == CANNOT_GO_ON:
            raise SinkRefused(self._why())
        if code != 0:
            raise SinkError(f"the Spark application ended with {_told(code)}: {self._why()}")

    async def _introduce(self, process: asyncio.subprocess.Process) -> None:
        """Tells the application how it may ask. One that has ended already does not hear it."""
        assert process.stdin is not None
        process.stdin.write(msgspec.json.encode(self._told) + b"\n")
        with contextlib.suppress(ConnectionError):
            await process.stdin.drain()

    async def _follow(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        while line := await next_line(process.stdout):
            try:
                report = msgspec.json.decode(line, type=_Report)
            except msgspec.MsgspecError:
                continue  # Spark prints what it likes
            await self._note(Timestamp(report.resolved), report.rows)

    async def _gather_errors(self, process: asyncio.subprocess.Process) -> None:
        assert process.stderr is not None
        while line := await next_line(process.stderr):
            self._errors.append(line.decode(errors="replace").rstrip())

    def _why(self) -> str:
        """The application's words about its end; without any, the last lines that were written."""
        lines = [line for line in self._errors if line.strip()] or ["it said nothing"]
        said = [line.removeprefix(SAYS) for line in lines if line.startswith(SAYS)]
        return (said or lines)[-1].replace(self._token, "…")[:ERROR_CHARACTERS_MAX]


async def run_lake(
    location: LakeLocation, feed: WorkerFeed, server: LakeServer, token: str
) -> None:
    """Runs a lake's application until the feed is cancelled, the work is done, or it fails.

    Raises SinkError, which another attempt may mend: the checkpoint says where it was; and
    SinkRefused, which none will.
    """
    resolved = feed.resolved

    async def note(at: Timestamp, rows: int) -> None:
        nonlocal resolved
        await feed.report(progress_at(feed, at), rows)
        resolved = at

    code = SCHEMA_CHANGED
    while code == SCHEMA_CHANGED:
        arguments = [f"--url={server.url}", *_lake_arguments(location, feed, resolved)]
        application = SparkApplication(LAKE_MODULE, arguments, server.told(token), token, note)
        code = await application.run()
    application.check(code)


def _lake_arguments(location: LakeLocation, feed: WorkerFeed, resolved: Timestamp) -> list[str]:
    scan = feed.options.initial_scan
    return [
        f"--table={feed.table_id}",
        f"--start={feed.start_at}",
        f"--schema-at={resolved}",
        f"--initial-scan={'no' if scan is ScanChoice.NO else 'yes'}",
        f"--only-scan={'yes' if scan is ScanChoice.ONLY else 'no'}",
        f"--master={location.master}",
        f"--format={location.format}",
        f"--path={location.path}",
        f"--checkpoint={location.path}/_checkpoint_{feed.identity.job_id}",
        f"--name=tailrace changefeed {feed.identity.job_id}",
        f"--trigger-seconds={feed.options.min_checkpoint_frequency}",
    ]


def progress_at(feed: WorkerFeed, resolved: Timestamp) -> SinkProgress:
    """The progress of a feed that has shown everything at or below `resolved`."""
    return SinkProgress(frontier=((feed.span, resolved),), resolved=resolved, scan_complete=True)


async def _stop(process: asyncio.subprocess.Process) -> None:
    """Ends it, by asking first. Does nothing to one that has ended."""
    if process.returncode is None:
        assert process.stdin is not None
        process.stdin.close()
        try:
            async with asyncio.timeout(STOP_SECONDS):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()


def _told(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"
