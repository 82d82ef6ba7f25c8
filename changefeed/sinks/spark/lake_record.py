"""A lake's record: how far its feed has been given the store's log.

It lies in a file beside the checkpoint of the lake's application.

That checkpoint says up to which timestamp the lake holds changes, and cannot say of
which history: a store that was put back from an older copy would be read on from there.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import msgspec

from ....kvlayer.files.disk import replace_file
from ....kvlayer.history import StorePosition
from ....kvlayer.process.offload import Offload


class LakeRecord:
    """One lake's file. It is as of the last batch that was reported, or of the last start."""

    def __init__(self, path: Path, lane: Offload) -> None:
        self._path = path
        self._lane = lane

    async def read(self) -> StorePosition | None:
        """The position of the store that the lake has; None before it has begun. Raises OSError."""
        try:
            found = await self._lane.run(self._path.read_bytes)
        except FileNotFoundError:
            return None
        return msgspec.json.decode(found, type=StorePosition)

    async def write(self, position: StorePosition) -> None:
        """Raises OSError."""
        await self._lane.run(partial(self._replace, msgspec.json.encode(position)))

    def _replace(self, content: bytes) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(self._path, content)
