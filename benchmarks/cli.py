"""What a person waits for at the command line, beside the start of a bare Python in the same run.

    python -m benchmarks.cli

`help_ms` is `tailrace --help`, `open_close_ms` a program that opens an embedded store in memory,
runs one statement and closes it, `sigterm_ms_with_streams` a server from SIGTERM to its end while a
changefeed streams over the Postgres protocol, and a range feed and a page's events over HTTP.
Medians of `--runs`.
"""

from __future__ import annotations

import argparse
import http.client
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from threading import Thread
from urllib.parse import urlsplit

import psycopg

from benchmarks.outcome import print_outcome
from benchmarks.servers import tailrace_server

OPEN_CLOSE = "import tailrace\nwith tailrace.open(':memory:') as db:\n    db.sql('SELECT 1')"
FEED = "CREATE CHANGEFEED FOR TABLE t"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=5)
    runs = parser.parse_args().runs
    python = _median_ms([sys.executable, "-c", "pass"], runs)
    shown = _median_ms([sys.executable, "-m", "tailrace.api.cli", "--help"], runs)
    opened = _median_ms([sys.executable, "-c", OPEN_CLOSE], runs)
    stopped = statistics.median([_stopped_ms() for _ in range(runs)])
    print(
        f"bare Python {python:.0f} ms, help {shown:.0f} ms, open and close {opened:.0f} ms, "
        f"SIGTERM with streams {stopped:.0f} ms"
    )
    metrics = {
        "help_ms": shown,
        "help_over_python": shown / python,
        "open_close_ms": opened,
        "sigterm_ms_with_streams": stopped,
    }
    print_outcome("cli", metrics)


def _median_ms(command: Sequence[str], runs: int) -> float:
    times = []
    for _ in range(runs):
        began = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        times.append((time.perf_counter() - began) * 1e3)
    return statistics.median(times)


def _stopped_ms() -> float:
    """A server's end, from the signal on."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as clients:
        with tailrace_server(Path(folder)) as (url, port):
            where = f"host=127.0.0.1 port={port} user=root dbname=defaultdb"
            client = clients.enter_context(closing(psycopg.connect(where, autocommit=True)))
            client.execute("CREATE TABLE t (k INT8 PRIMARY KEY)")
            client.execute("INSERT INTO t VALUES (1)")
            rows = client.cursor().stream(FEED)
            next(rows)
            for path in ("/v1/debug/rangefeed?target=t", "/v1/overview/events"):
                _follow(clients, url, path)
            began = time.perf_counter()
        return (time.perf_counter() - began) * 1e3


def _follow(clients: ExitStack, url: str, path: str) -> None:
    """Reads a stream's first line, and from then on whatever comes."""
    connection = clients.enter_context(closing(http.client.HTTPConnection(urlsplit(url).netloc)))
    connection.request("GET", path)
    response = connection.getresponse()
    assert response.status == 200, (path, response.status)
    assert response.readline(), path
    Thread(target=_drain, args=(response,), daemon=True).start()


def _drain(response: http.client.HTTPResponse) -> None:
    try:
        while response.read1():
            pass
    except (OSError, http.client.HTTPException):
        return  # the server has ended


if __name__ == "__main__":
    main()
