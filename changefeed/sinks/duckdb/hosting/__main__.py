"""The feed worker: `python -m tailrace.changefeed.sinks.duckdb.hosting`, as a server starts it."""

from __future__ import annotations

from .....kvlayer.clock import SystemWallClock
from .....kvlayer.process.offload import ThreadOffload
from .....kvlayer.worker import Channel, Peer, run_worker
from .host import MirrorHost


def host(channel: Channel) -> Peer:
    return MirrorHost(channel, ThreadOffload("worker"), SystemWallClock()).peer


if __name__ == "__main__":
    run_worker(host)
