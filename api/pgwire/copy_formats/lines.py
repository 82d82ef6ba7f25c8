"""Bytes to lines: what text and CSV have in common."""

from __future__ import annotations

from ....catalog.errors import SQLError
from ..messages import decode_text
from .batches import ROW_BYTES_MAX

END_OF_DATA = "\\."


class LineSplitter:
    """Gives the lines of a stream, without their ends (`\\n` or `\\r\\n`), as they become whole."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, data: bytes) -> list[str]:
        self._rest += data
        end = self._rest.rfind(b"\n")
        if end < 0:
            if len(self._rest) > ROW_BYTES_MAX:
                raise SQLError("54000", f"a line of COPY is longer than {ROW_BYTES_MAX} bytes")
            return []
        whole = bytes(memoryview(self._rest)[:end])
        del self._rest[: end + 1]
        return _lines(whole)

    def end(self) -> list[str]:
        """What stands behind the last line end, if anything does."""
        rest = bytes(self._rest)
        self._rest.clear()
        return _lines(rest) if rest else []


def _lines(data: bytes) -> list[str]:
    text = decode_text(data)
    if "\0" in text:
        raise SQLError("22021", 'invalid byte sequence for encoding "UTF8": 0x00')
    if "\r" in text:
        return [line.removesuffix("\r") for line in text.split("\n")]
    return text.split("\n")
