"""The demo's server: the store in process, with the dashboard on a free port."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

from rich.console import Console

from ...changefeed.sinks.spark import LakeServer
from ..descriptors import door_bounds, raise_limit
from ..embedded import AsyncDatabase, aopen
from ..http.server import HttpOptions, HttpServer, bind, url_of
from ..node import NodeOptions

LOOPBACK = "127.0.0.1"


@asynccontextmanager
async def demo_server(folder: Path, console: Console) -> AsyncIterator[AsyncDatabase]:
    """The store in `folder`, served at an address that is printed first."""
    with closing(bind(LOOPBACK, 0)) as listener:
        url = url_of(LOOPBACK, listener)
        options = NodeOptions(server=LakeServer(url))
        async with await aopen(folder, options) as database:
            bounds = door_bounds(raise_limit()).http
            server = HttpServer(database.node, listener, HttpOptions(bounds=bounds))
            listener.listen()
            serving = asyncio.create_task(server.run(), name="demo server")
            console.print(f"dashboard: {url}")
            try:
                yield database
            finally:
                server.stop()
                await serving
                await server.close()


async def until_told(console: Console) -> None:
    """Returns when the process is asked to end, by Ctrl-C for instance."""
    told = asyncio.Event()
    loop = asyncio.get_running_loop()
    for stop in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(stop, told.set)
    console.print("The dashboard stays up. Ctrl-C ends the demo.")
    try:
        await told.wait()
    finally:
        for stop in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(stop)
