"""Faults of a log."""

from __future__ import annotations

from ..errors import KVError


class LogCorrupt(KVError):
    """Bytes that were durable do not read back. Nothing was changed."""

    def __init__(self, segment: str, offset: int, why: str) -> None:
        super().__init__(
            f"log segment {segment} is corrupt at offset {offset}: {why}; restore the data folder "
            "from a backup"
        )
        self.segment = segment
        self.offset = offset


class LogTruncated(KVError):
    """An entry was asked for whose segment is deleted."""
