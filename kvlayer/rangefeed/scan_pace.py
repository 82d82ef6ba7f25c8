"""The pace of catch-up scans of raw keyspaces: of all together, in one store."""

from __future__ import annotations

from ..settings import Settings, declare_bytes

SCAN_RATE = declare_bytes(
    "kv.raw.scan_rate",
    128 * 1024 * 1024,
    "bytes a second that catch-up scans of raw keyspaces read, in the whole store; 0 for no limit",
)


class ScanPace:
    """Keeps scans that begin together, as after a restart of a capture, from taking the store.

    A slice is read at once where those before it are paid for, and is paid for afterwards:

        1,000 bytes a second     a slice of 500 at 0.0 s, the next at 0.5 s, whichever scan asks
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._paid_ns = 0

    def wait_ns(self, now_ns: int) -> int:
        """The nanoseconds for which the next slice has to wait."""
        return max(0, self._paid_ns - now_ns) if self._settings.get(SCAN_RATE) else 0

    def note_read(self, byte_count: int, now_ns: int) -> None:
        """A slice was read."""
        rate = self._settings.get(SCAN_RATE)
        if rate:
            self._paid_ns = max(self._paid_ns, now_ns) + byte_count * 1_000_000_000 // rate
