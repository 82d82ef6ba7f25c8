"""A relay on loopback that cuts connections in mid-stream, at the bytes that a test says.

with CuttingProxy(port, cuts=[100, 5000]) as proxy:
    …    # the first answer ends after 100 bytes, the second after 5000, the third whole
"""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Sequence
from types import TracebackType

PIECE = 4096


class CuttingProxy:
    """Relays one connection after another to `port`. `connections` counts those that came.

    A cut is hard (a reset) when `reset`, else an orderly end that comes too early.
    """

    def __init__(self, port: int, *, cuts: Sequence[int], reset: bool = False) -> None:
        self._port = port
        self._cuts = list(cuts)
        self._reset = reset
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._serve)
        self.connections = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return  # closed: the test is over
            self.connections += 1
            cut = self._cuts.pop(0) if self._cuts else None
            with client, socket.create_connection(("127.0.0.1", self._port)) as server:
                self._relay(client, server, cut)

    def _relay(self, client: socket.socket, server: socket.socket, cut: int | None) -> None:
        """Relays the answer, up to `cut` bytes of it, to one request of one connection."""
        head = threading.Thread(target=_pump, args=(client, server))
        head.start()
        sent = 0
        try:
            while piece := server.recv(PIECE):
                if cut is not None and sent + len(piece) >= cut:
                    client.sendall(piece[: cut - sent])
                    break
                client.sendall(piece)
                sent += len(piece)
        except OSError:
            pass  # the client has what it wants
        if cut is not None and self._reset:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.shutdown(socket.SHUT_RD)  # wakes the other thread; closing sends the reset
        else:
            _shut(client)
        _shut(server)
        head.join()

    def __enter__(self) -> CuttingProxy:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        _shut(self._listener)
        self._listener.close()
        self._thread.join()


def _pump(source: socket.socket, target: socket.socket) -> None:
    try:
        while piece := source.recv(PIECE):
            target.sendall(piece)
        target.shutdown(socket.SHUT_WR)  # what ends here ends there
    except OSError:
        pass  # either of them has gone


def _shut(end: socket.socket) -> None:
    try:
        end.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass  # it is shut already
