"""A siege: one fuzzer at one door in one state, and what was seen of the node meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import httpx2

from . import http, rpc, wire
from .besieged import Besieged, Observed
from .besieged_node import PASSWORD

LOOKS = 50
"""At the good client and at memory, over one siege."""

STATES: dict[str, tuple[Enum, ...]] = {
    "wire": tuple(wire.State),
    "http": tuple(http.State),
    "rpc": tuple(rpc.State),
}


STEP_MS_MAX = 10.0
REPEATS = 5


@dataclass(frozen=True, slots=True)
class _Attack:
    """`connect` makes one connection, with so many messages, out of `random` alone."""

    connect: Callable[[], Awaitable[None]]
    random: Random
    messages: int


async def siege(door: str, state: Enum, *, folder: Path, seed: int, messages: int) -> Observed:
    """Sends about so many messages. Raises AssertionError for what may not happen."""
    with Besieged(folder, trust=state is wire.State.LET_IN) as besieged:
        attack = _attack(besieged, state, seed)
        connections = -(-messages // attack.messages)
        between = max(1, connections // LOOKS)
        earlier = attack.random.getstate()
        for number in range(connections):
            begun = attack.random.getstate()
            await attack.connect()
            if number % between == 0:
                await asyncio.to_thread(besieged.look)
            await _weigh(besieged, attack, (earlier, begun))
            earlier = begun
        await asyncio.to_thread(besieged.check)
        return besieged.seen


async def _weigh(besieged: Besieged, attack: _Attack, last: Sequence[Any]) -> None:
    """Notes the longest step since the last call, in which the `last` connections were made.

    The CPU clock of a virtual machine goes on while the host runs another one, so a step over the
    bound is told from an interruption by making the same connections again: what counts is the
    shortest of the longest steps of each time.
    """
    step, seen = besieged.longest_step(), besieged.seen
    if step.cpu_ms > STEP_MS_MAX:
        seen.long += 1
        goes_on = attack.random.getstate()
        for _ in range(REPEATS):
            for begun in last:
                attack.random.setstate(begun)
                await attack.connect()
            await asyncio.to_thread(besieged.look)
            step = min(step, besieged.longest_step(), key=lambda each: each.cpu_ms)
            if step.cpu_ms <= STEP_MS_MAX:
                break
        attack.random.setstate(goes_on)
    seen.worst = max(seen.worst, step, key=lambda each: each.cpu_ms)


def _attack(besieged: Besieged, state: Enum, seed: int) -> _Attack:
    match state:
        case wire.State():
            on_wire = wire.Fuzzer(seed)
            connect = partial(wire.fuzz, besieged, state, on_wire)
            return _Attack(connect, on_wire.random, wire.MESSAGES_A_CONNECTION)
        case http.State():
            url = f"http://127.0.0.1:{besieged.doors.http}/openapi.json"
            document = httpx2.get(url, auth=("boss", PASSWORD)).json()
            over_http = http.Fuzzer(seed, http.routes_of(document))
            connect = partial(http.fuzz, besieged, state, over_http)
            return _Attack(connect, over_http.random, http.REQUESTS_A_CONNECTION)
        case rpc.State():
            of_nodes = rpc.Fuzzer(seed)
            connect = partial(rpc.fuzz, besieged, state, of_nodes)
            return _Attack(connect, of_nodes.random, rpc.CALLS_A_CONNECTION)
    raise AssertionError(state)
