"""The door for nodes: messages of the protocol between nodes, and damaged."""

from __future__ import annotations

from enum import Enum
from random import Random

import grpc
import grpc.aio
import msgspec

from tailrace.api.rpc.grpc_server import SERVICE
from tailrace.kvlayer.clock import Timestamp
from tailrace.kvlayer.remote import messages

from .besieged import PATIENCE_SECONDS, Besieged
from .besieged_node import TOKEN

CALLS_A_CONNECTION = 50

METHODS = (
    "heartbeat", "now", "holds", "threshold", "evaluate", "one_phase", "begin", "transaction",
    "point", "scan", "versions", "nosuch",
)  # fmt: skip


class State(Enum):
    """Who calls."""

    NOBODY = "nobody"
    WRONG = "wrong"
    NODE = "node"


class Fuzzer:
    """Makes messages from one seed. None of them writes: who has the token may write anything."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)

    def message(self) -> bytes:
        pick = self.random.choice
        key = self.random.randbytes(self.random.randrange(20))
        number = pick((0, 1, 2, 2**31, 2**63 - 1))
        made: messages.Message = pick(
            (
                messages.Now(number),
                messages.Heartbeat(number),
                messages.Get(key),
                messages.GetForUpdate(key),
                messages.ScanRows((key, key + b"\xff"), pick((None, 0, 10, -1)), False, "wait"),
                messages.Rollback(),
                messages.BeginStatement(),
                messages.PointRead(number, key, Timestamp(1), None),
            )
        )
        return msgspec.msgpack.encode(made)

    def damaged(self, message: bytes) -> bytes:
        if not message:
            return message
        data = bytearray(message)
        at = self.random.randrange(len(data))
        match self.random.randrange(6):
            case 0:
                data[at] = self.random.randrange(256)
            case 1:
                del data[at:]
            case 2:
                data[at:at] = self.random.randbytes(self.random.randrange(1, 9))
            case 3:
                data = bytearray(self.random.randbytes(self.random.randrange(40)))
            case _:
                pass
        return bytes(data)


async def fuzz(besieged: Besieged, state: State, fuzzer: Fuzzer) -> None:
    """One connection with some calls, each of which must be answered or refused."""
    token = {State.NOBODY: (), State.WRONG: (("authorization", "x"),)}.get(
        state, (("authorization", TOKEN),)
    )
    async with grpc.aio.insecure_channel(f"127.0.0.1:{besieged.doors.rpc}") as channel:
        for _ in range(CALLS_A_CONNECTION):
            method = fuzzer.random.choice(METHODS)
            call: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(
                f"/{SERVICE}/{method}"
            )
            message = fuzzer.damaged(fuzzer.message())
            try:
                await call(message, metadata=token, timeout=PATIENCE_SECONDS)
            except grpc.aio.AioRpcError as error:
                late_or_unknown = (grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.UNKNOWN)
                assert error.code() not in late_or_unknown, (method, message)
                if state is not State.NODE:
                    assert error.code() is grpc.StatusCode.UNAUTHENTICATED, error
            else:
                assert state is State.NODE, "answered without the token"
