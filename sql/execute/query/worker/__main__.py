"""The query worker: `python -m tailrace.sql.execute.query.worker`, as a server starts it."""

from __future__ import annotations

from .....kvlayer.clock import SystemWallClock
from .....kvlayer.process.offload import ThreadOffload
from .....kvlayer.worker import Channel, Peer, run_worker
from .host import QueryHost


def host(channel: Channel) -> Peer:
    return QueryHost(channel, ThreadOffload("queries"), SystemWallClock()).peer


if __name__ == "__main__":
    run_worker(host)
