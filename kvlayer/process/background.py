"""Work in the background of the loop: backfills, and whatever else nobody waits for by the row."""

from __future__ import annotations

import asyncio

TURNS = 4
"""A commit takes some six steps of the loop from its call until its feed's sink has the row, each
of them due only when the one before has run. Whoever yields once runs between any two of them, and
a commit waits for six of its slices; behind four turns it is for one or two. A turn in which
nothing is due costs some ten microseconds."""


async def give_way() -> None:
    """Lets all that is under way on the loop take its next few steps."""
    for _ in range(TURNS):
        await asyncio.sleep(0)
