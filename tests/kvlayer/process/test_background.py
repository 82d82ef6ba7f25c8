"""Work in the background lets what is under way go first."""

from __future__ import annotations

import asyncio

from tailrace.kvlayer.process.background import TURNS, give_way


def test_steps_of_a_chain_pass_between_two_slices() -> None:
    async def run() -> list[str]:
        order: list[str] = []

        async def slices() -> None:
            for _ in range(3):
                order.append("slice")
                await give_way()

        async def chain() -> None:
            for _ in range(TURNS):
                order.append("step")
                await asyncio.sleep(0)

        await asyncio.gather(slices(), chain())
        return order

    assert asyncio.run(run()) == ["slice", *["step"] * TURNS, "slice", "slice"]
