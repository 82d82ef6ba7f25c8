"""A siege: one fuzzer at one door in one state, and what was seen of the node meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from enum import Enum
from pathlib import Path

import httpx2

from . import http, rpc, wire
from .besieged import PASSWORD, Besieged, Observed

LOOKS = 50
"""At the good client and at memory, over one siege."""

STATES: dict[str, tuple[Enum, ...]] = {
    "wire": tuple(wire.State),
    "http": tuple(http.State),
    "rpc": tuple(rpc.State),
}


async def siege(door: str, state: Enum, *, folder: Path, seed: int, messages: int) -> Observed:
    """Sends about so many messages. Raises AssertionError for what may not happen."""
    with Besieged(folder, trust=state is wire.State.LET_IN) as besieged:
        attack, each = _attack(besieged, state, seed)
        connections = -(-messages // each)
        between = max(1, connections // LOOKS)
        for number in range(connections):
            await attack()
            if number % between == 0:
                await asyncio.to_thread(besieged.look)
        await asyncio.to_thread(besieged.check)
        return besieged.seen


def _attack(
    besieged: Besieged, state: Enum, seed: int
) -> tuple[Callable[[], Awaitable[None]], int]:
    """One connection of the fuzzer, and how many messages it has."""
    match state:
        case wire.State():
            on_wire = wire.Fuzzer(seed)
            return lambda: wire.fuzz(besieged, state, on_wire), wire.MESSAGES_A_CONNECTION
        case http.State():
            url = f"http://127.0.0.1:{besieged.http_port}/openapi.json"
            document = httpx2.get(url, auth=("boss", PASSWORD)).json()
            over_http = http.Fuzzer(seed, http.routes_of(document))
            return lambda: http.fuzz(besieged, state, over_http), http.REQUESTS_A_CONNECTION
        case rpc.State():
            of_nodes = rpc.Fuzzer(seed)
            return lambda: rpc.fuzz(besieged, state, of_nodes), rpc.CALLS_A_CONNECTION
    raise AssertionError(state)
