"""Binds of one statement, which differ in their values alone: what stands around these is looked at
once."""

from __future__ import annotations

from struct import Struct

from ...catalog.values.column_types import Datum
from .messages import Bind
from .wire_types import Decoder

_INT4 = Struct("!i")


class BindForm:
    """The form of the last Bind of a statement: what stands around the values, which are all that
    differs from one to the next.

        name 00 | 00 01  00 01 | 00 01 | length value | 00 00
                  formats        count   values         result formats
    """

    __slots__ = ("_decoders", "_head", "_tail", "result_formats")

    def __init__(self, message: Bind, decoders: list[Decoder]) -> None:
        formats, results = message.parameter_formats, message.result_formats
        self._head = _numbers(formats) + _numbers((len(message.parameters),), counted=False)
        self._tail = _numbers(results)
        self._decoders = decoders
        self.result_formats = results

    def values(self, data: bytes, at: int, end: int) -> list[Datum] | None:
        """The values of a Bind that ends at `end` and its name at `at`; None where it has another
        form. Raises what a value of another type raises."""
        if not data.startswith(self._head, at):
            return None
        at += len(self._head)
        found: list[Datum] = []
        unpack = _INT4.unpack_from
        for decode in self._decoders:
            if at + 4 > end:
                return None
            (length,) = unpack(data, at)
            at += 4
            if length >= 0:
                found.append(decode(data[at : at + length]))
                at += length
            elif length == -1:
                found.append(None)
            else:
                return None
        return found if data[at:end] == self._tail else None


def _numbers(numbers: tuple[int, ...], *, counted: bool = True) -> bytes:
    listed = b"".join([number.to_bytes(2, "big") for number in numbers])
    return len(numbers).to_bytes(2, "big") + listed if counted else listed
