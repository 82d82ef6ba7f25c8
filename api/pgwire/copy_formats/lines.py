"""Bytes to lines: what text and CSV have in common."""

from __future__ import annotations

from collections.abc import Iterator

from ....catalog.values.errors import SQLError
from ..messages import decode_text
from .batches import BLOCK_BYTES, ROW_BYTES_MAX

END_OF_DATA = "\\."


class LineSplitter:
    """Gives the lines of a stream in blocks, without the line feed that ends the last one.

    A carriage return before it is dropped too, unless `keep_returns`: it may belong to a value.
    """

    def __init__(self, *, keep_returns: bool = False) -> None:
        self._keep_returns = keep_returns
        self._rest = bytearray()

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Blocks of whole lines, once BLOCK_BYTES of them have come."""
        self._rest += data
        if len(self._rest) < BLOCK_BYTES:
            return
        rest, start = bytes(self._rest), 0
        while len(rest) - start >= BLOCK_BYTES:
            end = rest.rfind(b"\n", start, start + BLOCK_BYTES)
            if end < 0:
                end = rest.find(b"\n", start + BLOCK_BYTES)
            if end < 0:
                if len(rest) - start > ROW_BYTES_MAX:
                    raise SQLError("54000", f"a line of COPY is longer than {ROW_BYTES_MAX} bytes")
                break
            yield rest[start:end]
            start = end + 1
        del self._rest[:start]

    def end(self) -> Iterator[bytes]:
        """Yields the rest: the last line may lack its end."""
        rest = bytes(self._rest).removesuffix(b"\n") if self._rest else None
        self._rest.clear()
        if rest is not None:
            yield rest

    def lines(self, data: bytes) -> list[str]:
        """The lines of a block. Raises SQLError for bytes that are no text."""
        text = decode_text(data)
        if "\0" in text:
            raise SQLError("22021", 'invalid byte sequence for encoding "UTF8": 0x00')
        if "\r" in text and not self._keep_returns:
            return [line.removesuffix("\r") for line in text.split("\n")]
        return text.split("\n")
