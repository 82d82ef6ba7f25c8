"""Worker processes: where work goes that should not share an interpreter with the event loop.

A *worker* is a Python process that a server starts, feeds and outlives. Both sides speak over a
*channel*: frames of bytes through memory that they share, and a socket that rings. A *peer* makes
calls of frames: each side calls the other, any number of calls at once, and a caller that is
cancelled cancels what it called. `WorkerProcess` starts the process when it is first wanted, and
another one when that has died.

    server                                              worker
    peer.tell("emit", …)  ─┐  shared memory             handlers["emit"](…)
    peer.call("flush")    ─┴─────────────────────────▶  handlers["flush"]()
                          ◀──── the result, an error ─

Never knows: what the work is.
"""

from .channel import Channel, SocketDoorbell
from .peer import Handler, Peer, WorkerGone
from .process import VERSION, Started, WorkerProcess, start_process
from .program import run_worker
from .rows import received_rows, sent_pieces, sent_rows

__all__ = [
    "VERSION",
    "Channel",
    "Handler",
    "Peer",
    "SocketDoorbell",
    "Started",
    "WorkerGone",
    "WorkerProcess",
    "received_rows",
    "run_worker",
    "sent_pieces",
    "sent_rows",
    "start_process",
]
