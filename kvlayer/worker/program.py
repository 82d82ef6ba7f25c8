"""The program of a worker process: a module's `main`, as a server starts it.

It ends with the server, at once: what it has made durable is durable, and nothing else is of any
use.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pyarrow as pa

from ..process.tuned_process import tuned_process
from .channel import Channel
from .peer import Peer
from .process import inherited_channel


def run_worker(host: Callable[[Channel], Peer]) -> None:
    """Serves the server that started this process, until that is gone. `host` makes the side of the
    channel that answers."""
    # A terminal's and a service manager's signals go to all processes: the server ends this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    _yield_to_server()
    pa.array([0])  # imports pandas, where there is one: not while somebody waits
    with tuned_process():
        asyncio.run(_serve(host))


def _yield_to_server() -> None:
    """Has the kernel schedule this process as batch work, where it knows that and allows it.

    The kernel takes a message on a socket as a sign that its sender is about to wait, and wakes the
    receiver on the sender's core. An ordinary worker would preempt the server there, in the middle
    of a step of its loop, for 0.3 ms at each lone row. Batch work preempts nobody when it wakes.
    """
    if hasattr(os, "SCHED_BATCH"):
        with suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))


async def _serve(host: Callable[[Channel], Peer]) -> None:
    asyncio.get_running_loop().set_exception_handler(_fail)
    await host(inherited_channel(sys.argv[1:])).ended
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
