"""Bytes to lines: what text and CSV have in common."""

from __future__ import annotations

from ....catalog.errors import SQLError
from ..messages import decode_text
from .batches import ROW_BYTES_MAX

END_OF_DATA = "\\."


class LineSplitter:
    """Gives the lines of a stream, as they become whole, without the line feed that ends them.

    A carriage return before it is dropped too, unless `keep_returns`: it may belong to a value.
    """

    def __init__(self, *, keep_returns: bool = False) -> None:
        self._keep_returns = keep_returns
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
        return self._lines(whole)

    def end(self) -> list[str]:
        """What stands behind the last line end, if anything does."""
        rest = bytes(self._rest)
        self._rest.clear()
        return self._lines(rest) if rest else []

    def _lines(self, data: bytes) -> list[str]:
        text = decode_text(data)
        if "\0" in text:
            raise SQLError("22021", 'invalid byte sequence for encoding "UTF8": 0x00')
        if "\r" in text and not self._keep_returns:
            return [line.removesuffix("\r") for line in text.split("\n")]
        return text.split("\n")
