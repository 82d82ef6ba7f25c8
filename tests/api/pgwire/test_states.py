"""The protocol's machine, with bytes alone."""

from __future__ import annotations

from random import Random
from struct import pack

import pytest

from tailrace.api.pgwire import messages
from tailrace.api.pgwire.messages import (
    REPEATED_MAX,
    Bind,
    CancelRequest,
    CopyData,
    Describe,
    EncryptionRequest,
    Execute,
    Malformed,
    Parse,
    ProtocolViolation,
    Query,
    Startup,
    Sync,
    Target,
)
from tailrace.api.pgwire.states import FIRST_BYTES_MAX, MESSAGE_BYTES_MAX, Machine, State

STARTUP = pack("!II", 24, 196608) + b"user\0root\0\0" + b"\0" * 5
START = pack("!II", 8 + 11, 196608) + b"user\0root\0\0"


def frame(kind: bytes, body: bytes = b"") -> bytes:
    return kind + pack("!I", len(body) + 4) + body


QUERY = frame(b"Q", b"SELECT 1\0")
PARSE = frame(b"P", b"s\0SELECT $1\0" + pack("!HI", 1, 20))
BIND = frame(b"B", b"\0s\0" + pack("!Hh", 1, 1) + pack("!Hi", 2, -1) + pack("!i", 1) + b"x\0\0")
EXECUTE = frame(b"E", b"\0" + pack("!i", 5))
SYNC = frame(b"S")


def ready_machine() -> Machine:
    machine = Machine()
    machine.receive(START)
    assert machine.next_message() == Startup(0, {"user": "root"})
    machine.authenticated()
    machine.ready()
    return machine


def test_messages_that_come_again_are_remembered_to_a_bound() -> None:
    machine = ready_machine()
    for number in range(2 * REPEATED_MAX):
        machine.receive(frame(b"D", f"S{number}\0".encode()) + frame(b"D", b"S" + bytes(2)))
        assert machine.next_message() == Describe(Target.STATEMENT, f"{number}")
        damaged = machine.next_message()
        assert isinstance(damaged, Malformed), "an error is told anew each time"
    machine.receive(frame(b"D", b"S" + b"x" * 1000 + b"\0"))
    assert machine.next_message() == Describe(Target.STATEMENT, "x" * 1000)
    assert messages._repeated.cache_info().currsize <= REPEATED_MAX


def test_bytes_may_come_in_any_pieces() -> None:
    stream = PARSE + BIND + EXECUTE + SYNC
    wanted = [
        Parse("s", "SELECT $1", (20,)),
        Bind("", "s", (1,), (None, b"x"), ()),
        Execute("", 5),
        Sync(),
    ]
    for seed in range(20):
        random, machine, found, at = Random(seed), ready_machine(), [], 0
        while at < len(stream):
            size = random.randrange(1, 9)
            machine.receive(stream[at : at + size])
            at += size
            while (message := machine.next_message()) is not None:
                found.append(message)
        assert found == wanted, seed
        assert machine.buffered_bytes == 0


def test_what_comes_before_the_start_up() -> None:
    machine = Machine()
    machine.receive(pack("!II", 8, 80877104) + pack("!II", 8, 80877103))
    assert machine.next_message() == EncryptionRequest(gss=True)
    assert machine.next_message() == EncryptionRequest(gss=False)
    machine.receive(pack("!IIii", 16, 80877102, 7, 9))
    assert machine.next_message() == CancelRequest(7, 9)
    assert machine.state is State.CLOSED


@pytest.mark.parametrize(
    "data",
    [
        pack("!II", 7, 196608),
        pack("!II", FIRST_BYTES_MAX + 1, 196608),
        pack("!II", 8, 131072),
        STARTUP,
        b"GET / HTTP/1.1\r\n\r\n",
    ],
)
def test_a_start_up_that_is_none_ends_the_connection(data: bytes) -> None:
    machine = Machine()
    machine.receive(data)
    with pytest.raises(ProtocolViolation):
        machine.next_message()
    assert machine.state is State.CLOSED


@pytest.mark.parametrize(
    "data",
    [
        b"Q" + pack("!I", 3),
        b"Q" + pack("!I", MESSAGE_BYTES_MAX + 1),
        b"Q" + pack("!i", -1),
        b"?",
        frame(b"p", b"secret\0"),
    ],
)
def test_a_frame_that_is_none_ends_the_connection(data: bytes) -> None:
    machine = ready_machine()
    machine.receive(data)
    with pytest.raises(ProtocolViolation):
        machine.next_message()
    assert machine.state is State.CLOSED


@pytest.mark.parametrize("body", [b"", b"no end", b"\xff\0", b"SELECT 1\0more"])
def test_a_bad_body_is_an_error_in_its_place(body: bytes) -> None:
    machine = ready_machine()
    machine.receive(frame(b"Q", body) + QUERY)
    message = machine.next_message()
    assert isinstance(message, Malformed)
    assert message.kind is Query
    machine.ready()
    assert machine.next_message() == Query("SELECT 1")


def test_after_a_failure_all_is_skipped_up_to_sync() -> None:
    machine = ready_machine()
    machine.receive(PARSE + BIND + EXECUTE + QUERY + SYNC + QUERY)
    assert isinstance(machine.next_message(), Parse)
    machine.failed()
    assert machine.next_message() == Sync()
    assert machine.next_message() is None  # it waits for ReadyForQuery
    machine.ready()
    assert machine.next_message() == Query("SELECT 1")


def test_rows_of_a_copy_that_has_ended_are_dropped() -> None:
    machine = ready_machine()
    machine.receive(QUERY)
    machine.next_message()
    machine.copy_in()
    machine.receive(frame(b"d", b"1\n") + SYNC + frame(b"d", b"2\n") + frame(b"c") + QUERY)
    assert machine.next_message() == CopyData(b"1\n")
    assert machine.next_message() == CopyData(b"2\n")
    machine.copy_ended()
    machine.ready()
    assert machine.next_message() == Query("SELECT 1")


def test_executes_are_counted_up_to_the_sync() -> None:
    machine = ready_machine()
    machine.receive(PARSE + BIND + EXECUTE)
    machine.next_message()
    assert machine.executes_ahead(9), "the Sync is not there"
    machine.receive(BIND + EXECUTE + SYNC + EXECUTE)
    assert machine.executes_ahead(1)
    assert not machine.executes_ahead(2)
