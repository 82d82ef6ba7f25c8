"""The feed worker: `python -m tailrace.changefeed.sinks.duckdb.hosting`, as a server starts it.

It ends with the server, at once: what it has committed is durable, and nothing else is of any use.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import traceback
from typing import Any

import pyarrow as pa

from .....kvlayer.clock import SystemWallClock
from .....kvlayer.offload import ThreadOffload
from .....kvlayer.tuned_process import tuned_process
from .....kvlayer.worker import inherited_channel
from .host import MirrorHost


async def serve(arguments: list[str]) -> None:
    asyncio.get_running_loop().set_exception_handler(_fail)
    host = MirrorHost(inherited_channel(arguments), ThreadOffload("worker"), SystemWallClock())
    await host.peer.ended
    os._exit(0)


def _fail(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """A step of the loop that failed is a fault of this program, which may have lost a frame by it:
    better no worker than such a one."""
    if "handle" not in context:
        loop.default_exception_handler(context)
        return
    error = context.get("exception")
    if error is not None:
        traceback.print_exception(error)
    print(f"{context['message']}: {error!r}", file=sys.stderr, flush=True)
    os._exit(1)


def main() -> None:
    # A terminal's and a service manager's signals go to all processes: the server ends this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    pa.array([0])  # imports pandas, where there is one: not while a feed waits
    with tuned_process():
        asyncio.run(serve(sys.argv[1:]))


if __name__ == "__main__":
    main()
