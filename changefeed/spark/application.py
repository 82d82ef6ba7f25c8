"""The common part of the server's applications of Spark: how they begin, report and end.

The server writes a line of JSON into the standard input: what is secret or long. The application
prints `{"resolved": …, "rows": …}` for each batch that is done, and ends when its standard input
does. Exit codes: 0 it was told to end, or has done its work; 3 the table was altered, so start it
again; 4 it cannot go on, whatever is tried; 1 anything else. Why it ended is a line of its standard
error.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from .source import register

FAILED = 1
SCHEMA_CHANGED = 3
CANNOT_GO_ON = 4
LOOK_SECONDS = 0.1

ALONE_SECONDS = 60.0
"""How long the application of a server that was killed may take to end before this one begins."""

STOP_SECONDS = 10.0
"""How long ending may take. A batch that is cut short by it is written again from the start."""

SAYS = "tailrace: "
"""What its line in the standard error begins with; Spark writes there too."""

STANDARD_INPUT = 0

_OURS = "tailrace.changefeed.spark."
_CODES = {
    "SchemaChanged": SCHEMA_CHANGED,
    "TableDropped": CANNOT_GO_ON,
    "TableMissing": CANNOT_GO_ON,
    "CheckpointRefused": CANNOT_GO_ON,
    "TargetRefused": CANNOT_GO_ON,
}
"""What the source raises, and who writes, by name: it comes out of another process, as text."""


Body = Callable[[SparkSession, Mapping[str, str], threading.Event], int]
"""Runs until the event is set, or to its end; returns the exit code."""


def run_application(body: Body, *, master: str, name: str, lock: Path | None = None) -> int:
    """The application's life; returns its exit code. Under a `lock`, a file, one runs at a time."""
    told_first = json.loads(_first_line())
    told = threading.Event()
    threading.Thread(target=_wait_for_end, args=(told,), daemon=True).start()
    with contextlib.nullcontext() if lock is None else _alone(lock, told):
        try:
            return _run(body, master, name, told_first, told)
        except Exception as error:  # whatever it was, the server is told in a line
            return _fail(error)


def _run(
    body: Body, master: str, name: str, told_first: Mapping[str, str], told: threading.Event
) -> int:
    session = (
        SparkSession.builder.master(master)
        .appName(name)
        .config("spark.ui.enabled", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    try:
        register(session)
        return body(session, told_first, told)
    finally:
        session.stop()


@contextlib.contextmanager
def _alone(lock: Path, told: threading.Event) -> Iterator[None]:
    """The lock ends with the process, however it ends."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + ALONE_SECONDS
    with lock.open("a") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if told.is_set() or time.monotonic() > deadline:
                    _say(f"{lock} is locked: another application does this work")
                    sys.exit(FAILED)
                time.sleep(LOOK_SECONDS)
        yield


def watch(query: StreamingQuery, told: threading.Event, *, only_first: bool = False) -> int:
    """Reports batches until the query ends or the server does; the exit code. With `only_first` its
    work is done with the first batch."""
    reported = -1
    while query.isActive and not told.is_set():
        reported = _report(query, reported)
        if only_first and reported >= 0:
            break
        time.sleep(LOOK_SECONDS)
    failure = query.exception()
    _report(query, reported)
    query.stop()
    return 0 if failure is None or told.is_set() else _fail(failure)


def _report(query: StreamingQuery, after: int) -> int:
    """Prints the batches above `after` that are done. The last of them."""
    for progress in query.recentProgress:
        batch = progress["batchId"]
        end = progress["sources"][0]["endOffset"] if progress["sources"] else None
        if batch <= after or end is None:
            continue
        offset = json.loads(end) if isinstance(end, str) else end
        print(json.dumps({"resolved": offset["ts"], "rows": progress["numInputRows"]}), flush=True)
        after = batch
    return after


def _fail(error: Exception) -> int:
    """Says why in a line, and returns the exit code. The source's own words are the best."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    ours = [line.removeprefix(_OURS) for line in lines if line.startswith(_OURS)]
    if not ours:
        _say(lines[0] if lines else type(error).__name__)
        return FAILED
    name, _, why = ours[-1].partition(": ")
    _say(why)
    return _CODES.get(name.rpartition(".")[2], FAILED)


def _say(why: str) -> None:
    print(f"{SAYS}{why}", file=sys.stderr, flush=True)


def _first_line() -> bytes:
    """Byte by byte: the rest is for who waits for the end of it."""
    line = b""
    while not line.endswith(b"\n"):
        byte = os.read(STANDARD_INPUT, 1)
        if not byte:
            sys.exit(FAILED)
        line += byte
    return line


def _wait_for_end(told: threading.Event) -> None:
    # Not through `sys.stdin`, whose lock this thread would hold when the interpreter ends: that is
    # a fatal error, and the exit code would be lost.
    while os.read(STANDARD_INPUT, 1024):
        pass
    told.set()
    timer = threading.Timer(STOP_SECONDS, os._exit, (0,))
    timer.daemon = True
    timer.start()
