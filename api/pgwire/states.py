"""The protocol as a table: which message may come in which state, and which state follows.

What is not in the table is a violation, which ends the connection; nothing here does I/O, reads a
clock or knows SQL. `Machine` turns bytes into messages and holds the state:

    machine = Machine()
    machine.receive(data)
    while (message := machine.next_message()) is not None:
        ...                       # and tell it what was done: machine.ready(), machine.failed() …
"""

from __future__ import annotations

from enum import Enum
from struct import Struct

from .messages import (
    MESSAGE_KINDS,
    Bind,
    CancelRequest,
    Close,
    CopyData,
    CopyDone,
    CopyFail,
    Describe,
    EncryptionRequest,
    Execute,
    First,
    Flush,
    Malformed,
    Message,
    Parse,
    Password,
    ProtocolViolation,
    Query,
    Startup,
    Sync,
    Terminate,
    parse_first,
    parse_message,
)

FIRST_BYTES_MAX = 10_000
"""A message before authentication: as long as PostgreSQL lets it be."""

MESSAGE_BYTES_MAX = 64 * 1024 * 1024
"""Any later message. A statement of 10 MB and a value of 32 MB in hexadecimal fit."""

COMPACT_BYTES = 256 * 1024
"""Bytes that were read are dropped from the buffer when there are this many."""


class State(Enum):
    STARTUP = "startup"  # nobody has said who they are
    AUTHENTICATING = "authenticating"
    READY = "ready"  # the server has said ReadyForQuery and waits
    BUSY = "busy"  # a simple query runs
    PIPELINE = "pipeline"  # extended messages come, and a Sync will end them
    SKIPPING = "skipping"  # after an error in a pipeline: all is dropped up to Sync
    COPY_IN = "copy in"  # a simple query takes rows
    PIPELINE_COPY_IN = "copy in, in a pipeline"
    CLOSED = "closed"

    __hash__ = object.__hash__  # each is looked up with every message, and Enum's is slow


# By themselves: to find a member in its class takes sixteen times as long.
READY, BUSY = State.READY, State.BUSY


_EXTENDED = (Parse, Bind, Describe, Execute, Close, Flush)
_COPY = (CopyData, CopyDone, CopyFail)


def _in_pipeline() -> dict[type[object], State]:
    extended: dict[type[object], State] = dict.fromkeys(_EXTENDED, State.PIPELINE)
    # What is left of a COPY that has failed is ignored, as PostgreSQL does.
    stale: dict[type[object], State] = dict.fromkeys(_COPY, State.READY)
    return {**stale, **extended, Sync: State.BUSY, Query: State.BUSY, Terminate: State.CLOSED}


def _in_copy(state: State) -> dict[type[object], State]:
    # Flush and Sync are ignored while rows come: a client may have sent them ahead of the rows.
    taken: dict[type[object], State] = dict.fromkeys((*_COPY, Flush, Sync), state)
    return {**taken, Terminate: State.CLOSED}


TABLE: dict[State, dict[type[object], State]] = {
    State.STARTUP: {
        EncryptionRequest: State.STARTUP,
        CancelRequest: State.CLOSED,
        Startup: State.AUTHENTICATING,
    },
    State.AUTHENTICATING: {Password: State.AUTHENTICATING, Terminate: State.CLOSED},
    State.READY: _in_pipeline(),
    State.PIPELINE: {**_in_pipeline(), **dict.fromkeys(_COPY, State.PIPELINE)},
    State.SKIPPING: {
        **dict.fromkeys((*_EXTENDED, *_COPY, Query), State.SKIPPING),
        Sync: State.BUSY,
        Terminate: State.CLOSED,
    },
    State.COPY_IN: _in_copy(State.COPY_IN),
    State.PIPELINE_COPY_IN: _in_copy(State.PIPELINE_COPY_IN),
    State.BUSY: {},
    State.CLOSED: {},
}
"""What a client may send. In BUSY messages wait in the buffer until the server is READY."""

_STALE = frozenset(_COPY)
MEANINGLESS: dict[State, frozenset[type[object]]] = {
    **dict.fromkeys(State, _STALE),
    State.SKIPPING: frozenset((*_EXTENDED, *_COPY, Query)),
    State.COPY_IN: frozenset((Flush, Sync)),
    State.PIPELINE_COPY_IN: frozenset((Flush, Sync)),
}
"""What the table lets pass and is to be dropped, by the state before it."""

REPEATED_BIND_BYTES_MAX = 4096
"""A Bind that is longer is taken by itself: its values are many, or long."""

_HEADER = Struct("!Bi")
_LENGTH = Struct("!i")
_SYNC, _EXECUTE, _QUERY, _BIND = ord("S"), ord("E"), ord("Q"), ord("B")
_DESCRIBE_UNNAMED = b"D\0\0\0\x06P\0"
_EXECUTE_UNNAMED = b"E\0\0\0\x09\0\0\0\0\0"
_RUN = _EXECUTE_UNNAMED + b"S\0\0\0\x04"
_DESCRIBED_RUN = _DESCRIBE_UNNAMED + _RUN

LONE_QUERY_BYTES_MAX = 32
"""BEGIN or COMMIT, in as many letters as they have."""


def lone_run(data: bytes) -> tuple[int, bool] | None:
    """The end of a Bind and whether its portal is described, where `data` is this and nothing else:
    Bind, perhaps Describe, Execute of all rows, each of the portal without a name, and Sync."""
    described = data.endswith(_DESCRIBED_RUN)
    if not described and not data.endswith(_RUN):
        return None
    end = len(data) - len(_DESCRIBED_RUN if described else _RUN)
    if end < 5 or data[0] != _BIND or 1 + _LENGTH.unpack_from(data, 1)[0] != end:
        return None
    return end, described


def lone_query(data: bytes) -> bytes | None:
    """The body of a Query, where `data` is this and nothing else, of a few bytes."""
    if not 5 < len(data) <= LONE_QUERY_BYTES_MAX or data[0] != _QUERY:
        return None
    return data[5:] if 1 + _LENGTH.unpack_from(data, 1)[0] == len(data) else None


class Machine:
    """One connection's side of the protocol: bytes in, messages out, and the state between."""

    def __init__(self) -> None:
        self.state = State.STARTUP
        self._buffer = bytearray()
        self._at = 0

    @property
    def buffered_bytes(self) -> int:
        return len(self._buffer) - self._at

    def receive(self, data: bytes) -> None:
        self._buffer += data

    def next_message(self) -> First | Message | None:
        """The next whole message that means something now; None where more bytes are needed.

        What is skipped, or of no meaning in this state, is left out. Raises ProtocolViolation, and
        then the machine is CLOSED.
        """
        while TABLE[state := self.state]:
            try:
                message = self._first() if state is State.STARTUP else self._framed()
                if message is None:
                    return None
                kind = message.kind if isinstance(message, Malformed) else type(message)
                following = TABLE[state].get(kind)
                if following is None:
                    raise ProtocolViolation(
                        f"unexpected message {kind.__name__} while the connection is {state.value}"
                    )
            except ProtocolViolation:
                self.state = State.CLOSED
                raise
            self.state = following
            if kind not in MEANINGLESS[state]:
                return message
        return None

    def _first(self) -> First | None:
        if self.buffered_bytes < 4:
            return None
        (length,) = _LENGTH.unpack_from(self._buffer, self._at)
        if not 8 <= length <= FIRST_BYTES_MAX:
            raise ProtocolViolation("invalid length of startup packet")
        if self.buffered_bytes < length:
            return None
        return parse_first(self._take(4, length))

    def _framed(self) -> Message | None:
        held = len(self._buffer) - self._at
        if held < 5:
            # Who does not speak the protocol is told at the first byte.
            if held and self._buffer[self._at] not in MESSAGE_KINDS:
                raise _unknown(self._buffer[self._at])
            return None
        kind, length = _HEADER.unpack_from(self._buffer, self._at)
        if kind not in MESSAGE_KINDS:
            raise _unknown(kind)
        most = FIRST_BYTES_MAX if self.state is State.AUTHENTICATING else MESSAGE_BYTES_MAX
        if not 4 <= length <= most:
            raise ProtocolViolation(
                f"invalid message length {length}", detail=f"A message has at most {most} bytes."
            )
        if held <= length:
            return None
        return parse_message(kind, self._take(5, length + 1))

    def _take(self, header: int, length: int) -> bytes:
        start = self._at + header
        self._at += length
        body = bytes(memoryview(self._buffer)[start : self._at])
        if self._at == len(self._buffer):
            self._buffer.clear()
            self._at = 0
        elif self._at >= COMPACT_BYTES:
            del self._buffer[: self._at]
            self._at = 0
        return body

    def executes_ahead(self, most: int) -> bool:
        """Whether more than `most` Execute stand in the buffer before the Sync, or may be to come
        before it. So whoever runs one statement knows whether it is the last of its pipeline.
        """
        at, count = self._at, 0
        end = len(self._buffer)
        while end - at >= 5:
            kind, length = _HEADER.unpack_from(self._buffer, at)
            if kind in (_SYNC, _QUERY):
                return False
            count += kind == _EXECUTE
            if length < 4 or count > most:
                return True
            at += length + 1
        return True

    def repetitions(self, beginning: bytes, most: int) -> list[tuple[bytes, bool]]:
        """Takes the Binds that stand next whole, each with the Execute of all rows of the portal
        without a name behind it, and perhaps a Describe of that between: their bodies, and whether
        there is one. At most so many, and only those whose body begins with `beginning`."""
        assert self.state is State.PIPELINE, self.state
        buffer, at = self._buffer, self._at
        found: list[tuple[bytes, bool]] = []
        while len(found) < most and len(buffer) - at >= 5:
            kind, length = _HEADER.unpack_from(buffer, at)
            start, end = at + 5, at + 1 + length
            if kind != _BIND or not len(beginning) <= length <= REPEATED_BIND_BYTES_MAX:
                break
            described = buffer.startswith(_DESCRIBE_UNNAMED, end)
            behind = end + len(_DESCRIBE_UNNAMED) if described else end
            if not buffer.startswith(beginning, start):
                break
            if not buffer.startswith(_EXECUTE_UNNAMED, behind):
                break
            found.append((bytes(buffer[start:end]), described))
            at = behind + len(_EXECUTE_UNNAMED)
        if found:
            self._take(0, at - self._at)
        return found

    def busy(self) -> None:
        """What `lone_run` or `lone_query` found is carried out, and its answer, which ends with
        `ready`, is still to come."""
        self._move(BUSY, READY)

    # What the server has done

    def authenticated(self) -> None:
        self._move(State.BUSY, State.AUTHENTICATING)

    def ready(self) -> None:
        """ReadyForQuery was sent."""
        self._move(READY, BUSY)

    def failed(self) -> None:
        """An error was sent in answer to an extended message: the rest is skipped up to Sync."""
        self._move(State.SKIPPING, State.PIPELINE, State.PIPELINE_COPY_IN)

    def copy_in(self) -> None:
        """The client was asked for rows."""
        following = State.COPY_IN if self.state is State.BUSY else State.PIPELINE_COPY_IN
        self._move(following, State.BUSY, State.PIPELINE)

    def copy_ended(self) -> None:
        """The rows are in, or refused."""
        following = State.BUSY if self.state is State.COPY_IN else State.PIPELINE
        self._move(following, State.COPY_IN, State.PIPELINE_COPY_IN)

    def close(self) -> None:
        self.state = State.CLOSED

    def _move(self, following: State, *before: State) -> None:
        assert self.state in before, (self.state, following)
        self.state = following


def _unknown(kind: int) -> ProtocolViolation:
    return ProtocolViolation(f"invalid frontend message type {kind}")
