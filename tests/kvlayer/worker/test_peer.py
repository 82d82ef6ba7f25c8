"""Calls from either side end in what the other side's handler came to, or in its absence."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from tailrace.catalog.values.errors import SQLError
from tailrace.changefeed.sinks.protocol import PastUnknown, SinkRefused
from tailrace.kvlayer.history import StorePosition
from tailrace.kvlayer.worker import Channel, Handler, Peer, WorkerGone
from tests.harness.loop_doorbell import LoopDoorbell
from tests.harness.simulation import Simulation


def peers(handlers: dict[str, Handler], own: dict[str, Handler] | None = None) -> tuple[Peer, Peer]:
    there, back = (memoryview(bytearray(256)) for _ in range(2))
    near, far = LoopDoorbell.pair()
    return Peer(Channel(near, there, back), own or {}), Peer(Channel(far, back, there), handlers)


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    async def whole() -> None:
        await scenario()

    Simulation(1).run(whole())


def test_calls_are_answered_in_any_order() -> None:
    async def answer(seconds: float) -> float:
        await asyncio.sleep(seconds)
        return seconds

    async def scenario() -> None:
        near, _ = peers({"answer": answer, "add": lambda one, other: one + other})
        ended: list[float] = []

        async def ask(seconds: float) -> None:
            ended.append(await near.call("answer", seconds))

        await asyncio.gather(*map(ask, [3, 1, 2]))
        assert ended == [1, 2, 3]
        assert await near.call("add", "a" * 1_000, "b") == "a" * 1_000 + "b"

    run(scenario)


def test_a_called_side_calls_back() -> None:
    async def scenario() -> None:
        async def twice(number: int) -> int:
            found: int = await far.call("double", number) + await far.call("double", number)
            return found

        near, far = peers({"twice": twice}, {"double": lambda number: 2 * number})
        assert await near.call("twice", 21) == 84

    run(scenario)


@pytest.mark.parametrize(
    "error",
    [
        SQLError("42501", "no", detail="Because.", hint="Ask."),
        PastUnknown("store 1", StorePosition(incarnation="first", index=7)),
        KeyError("k"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_come_as_they_were_raised(error: Exception) -> None:
    async def fail() -> None:
        raise error

    async def scenario() -> None:
        near, _ = peers({"fail": fail})
        with pytest.raises(type(error)) as raised:
            await near.call("fail")
        assert raised.value is not error
        assert raised.value.args == error.args
        assert vars(raised.value) == vars(error)
        assert isinstance(raised.value, SinkRefused) == isinstance(error, SinkRefused)

    run(scenario)


def test_who_is_cancelled_goes_on_when_the_call_has_ended() -> None:
    async def scenario() -> None:
        ended: list[str] = []

        async def linger() -> None:
            try:
                await asyncio.sleep(100)
            finally:
                await asyncio.sleep(1)
                ended.append("there")

        near, _ = peers({"linger": linger})
        call = asyncio.create_task(near.call("linger"))
        await asyncio.sleep(1)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert ended == ["there"]

    run(scenario)


def test_frames_are_taken_in_their_order() -> None:
    """A call takes what was told before it, and nothing of what is told behind it."""

    async def scenario() -> None:
        told: list[int] = []

        async def wait(taken: list[int]) -> list[int]:
            await asyncio.sleep(1)
            return taken

        near, _ = peers({"tell": told.append, "take": lambda: wait(list(told))})
        near.tell("tell", 1)
        first = near.begin_call(1, "take", ())
        near.tell("tell", 2)
        second = near.begin_call(2, "take", ())  # which also tells of what is before it
        assert (await first, await second) == ([1], [1, 2])

    run(scenario)


def test_all_calls_end_with_the_other_side() -> None:
    async def scenario() -> None:
        cancelled: list[bool] = []

        async def linger() -> None:
            try:
                await asyncio.sleep(100)
            except asyncio.CancelledError:
                cancelled.append(True)
                raise

        near, far = peers({"linger": linger})
        calls = [asyncio.create_task(near.call("linger")) for _ in range(3)]
        await asyncio.sleep(1)
        far.end("gone")
        await near.ended
        near.end("it was killed")
        for call in calls:
            with pytest.raises(WorkerGone, match="it was killed"):
                await call
        with pytest.raises(WorkerGone, match="it was killed"):
            await near.call("linger")
        near.tell("nobody")
        assert cancelled == [True] * 3

    run(scenario)
