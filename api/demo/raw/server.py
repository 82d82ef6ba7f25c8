"""A server of the demo: a process of its own, that is killed and started again at one address."""

from __future__ import annotations

import asyncio
import socket
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from contextlib import suppress
from pathlib import Path
from random import sample
from typing import Any

import httpx2

from ....error import Error

START_SECONDS = 180.0


PORTS = range(20_000, 32_000)
"""Below those that connections are made from. Whoever asks a server again and again while it is
down is given such a port at last that is the server's own, and keeps it from its server."""


class ServerFailed(Error):
    """A server of the demo did not start, or refused a statement."""


def free_port() -> int:
    """A port to listen at, now and after each restart. Raises ServerFailed."""
    for port in sample(PORTS, 100):
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise ServerFailed(f"no port of {PORTS.start} to {PORTS.stop - 1} is free")


class DemoServer:
    """`tailrace serve` on a folder. `rpc` is the address where nodes may join, if they may."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder = folder
        self.port = free_port()
        self.rpc = ""
        self._options = options
        self._process: Process | None = None
        self._log = folder.with_suffix(".log")

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self._process is not None, "the server runs"
        return self._process.pid

    async def start(self) -> None:
        """Returns when it is ready. Raises ServerFailed."""
        command = (
            sys.executable, "-m", "tailrace.api.cli", "serve", str(self.folder), "--insecure",
            "--port", str(self.port), "--pg-port", "0", *self._options,
        )  # fmt: skip
        with self._log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *command, stdin=DEVNULL, stdout=PIPE, stderr=log
            )
        assert self._process.stdout is not None
        async with asyncio.timeout(START_SECONDS):
            async for line in self._process.stdout:
                said = line.decode().strip()
                if "nodes may join at " in said:
                    self.rpc = said.rpartition(" ")[2]
                if "ready on " in said:
                    self.port = int(said.rpartition(":")[2])
                    return
        raise ServerFailed(f"the server of {self.folder} ended: {self._log.read_text()[-2000:]}")

    async def kill(self) -> None:
        """As kill -9 does."""
        process, self._process = self._process, None
        if process is not None and process.returncode is None:
            process.kill()
        if process is not None:
            await process.wait()

    async def restart(self) -> None:
        await self.kill()
        await self.start()

    async def rows(self, text: str) -> list[list[Any]]:
        """The rows of the last statement. Raises ServerFailed, and httpx2.HTTPError."""
        async with httpx2.AsyncClient(timeout=60.0, trust_env=False) as client:
            answer = await client.post(f"{self.url}/v1/sql", json={"sql": text})
        if answer.status_code != 200:
            raise ServerFailed(f"{text}: {answer.text}")
        rows: list[list[Any]] = answer.json()["results"][-1].get("rows", [])
        return rows
