"""The interface of a store to scans."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Protocol

from ...kvlayer.clock import Timestamp
from ...kvlayer.span import Span


class ScanReader(Protocol):
    """A store's rows at one timestamp."""

    def scan_slices(self, span: Span) -> AsyncGenerator[list[tuple[bytes, bytes]], None]:
        """Keys and bodies in key order, some at a time."""
        ...

    async def get_with_timestamp(self, key: bytes) -> tuple[bytes, Timestamp] | None:
        """A row's body, and when it was written."""
        ...
