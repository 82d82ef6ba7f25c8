"""The soak itself: stretches without abusers and with them, in turn."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter

from tests.harness.server_process import ServerProcess

from .abusers import MALLORY
from .abusers import PASSWORD as MALLORYS
from .clients import CLIENTS, TABLES, Client, Heard, capacity, connect, offered

SHARE = 0.2
"""Of what the server can take."""

SLOWER_MAX = 3.0
PATIENCE_SECONDS = 60.0
ROOT = ("root", "r")


@dataclass(frozen=True, slots=True)
class Outcome:
    """Seconds at the 99th percentile of each stretch; every error that a good client heard."""

    rate: float
    calm: list[float]
    besieged: list[float]
    errors: list[str]

    @property
    def slower(self) -> float:
        return median(self.besieged) / median(self.calm)


def prepare_server(server: ServerProcess, workers: str | None = None) -> None:
    """Users, and ten tables with a feed each. Everybody is somebody from here on. `workers` is the
    setting `changefeed.workers`, None its default."""
    if workers is not None:
        server.sql(f"SET CLUSTER SETTING changefeed.workers = '{workers}'")
    tables = ";".join(
        f"CREATE TABLE good{n} (k INT8 PRIMARY KEY, note STRING);"
        f"GRANT ALL ON good{n} TO good;"
        f"CREATE CHANGEFEED FOR TABLE good{n} INTO 'duckdb:///good{n}.duckdb'"
        for n in range(TABLES)
    )
    for text in (
        f"CREATE USER good PASSWORD 'x'; CREATE USER {MALLORY} PASSWORD '{MALLORYS}';"
        f"CREATE TABLE own (k INT8 PRIMARY KEY, v STRING); ALTER TABLE own OWNER TO {MALLORY}",
        *tables.split(";"),
        f"ALTER USER root PASSWORD '{ROOT[1]}'",
    ):
        server.sql(text)


@contextlib.contextmanager
def abused(server: ServerProcess, *names: str) -> Iterator[None]:
    """One of each abuser, or of those, is at work in a process of their own."""
    command = [sys.executable, "-m", "tests.soak.abusers", str(server.port), str(server.pg_port)]
    command += names
    with subprocess.Popen(command) as process:
        try:
            yield
            assert process.poll() is None, "the abusers have given up"
        finally:
            process.kill()


@contextlib.asynccontextmanager
async def connected(port: int) -> AsyncIterator[list[Client]]:
    clients = [await connect(port, number) for number in range(CLIENTS)]
    try:
        yield clients
    finally:
        for client in clients:
            await client.close()


async def soak(
    folder: Path, *, seconds: float, stretch_seconds: float, workers: str | None = None
) -> Outcome:
    """Stretches of so many seconds, calm and besieged in turn. Raises AssertionError where a
    mirror is not what was committed."""
    calm: list[float] = []
    besieged: list[float] = []
    errors: list[str] = []
    with ServerProcess(folder / "data") as insecure:
        prepare_server(insecure, workers)
    with ServerProcess(folder / "data", insecure=False) as server:
        server.client.auth = ROOT
        async with connected(server.pg_port) as clients:
            rate = SHARE * await capacity(clients)
            for _ in range(max(1, int(seconds / (2 * stretch_seconds)))):
                heard = await offered(clients, rate, stretch_seconds)
                _note(heard, calm, errors)
                with abused(server):
                    heard = await offered(clients, rate, stretch_seconds)
                _note(heard, besieged, errors)
        await asyncio.to_thread(check_mirrors, server)
    return Outcome(rate, calm, besieged, errors)


def _note(heard: Heard, quantiles: list[float], errors: list[str]) -> None:
    quantiles.append(heard.quantile(0.99))
    errors.extend(heard.errors)


def check_mirrors(server: ServerProcess) -> None:
    """Each mirror comes to have the rows of its table."""
    count = "SELECT count(*), min(k), max(k) FROM good{n}"
    for n in range(TABLES):
        (committed,) = server.rows(count.format(n=n))
        patience = perf_counter() + PATIENCE_SECONDS
        while (found := server.mirror_rows(f"good{n}.duckdb", count.format(n=n))) != [committed]:
            assert perf_counter() < patience, (n, found, committed)
