"""The keys that somebody asks to see."""

from __future__ import annotations

from ...catalog.descriptors.names import TableName
from ...catalog.descriptors.system_tables import DEFAULT_DATABASE
from ...catalog.store.key_names import KeyNames
from ...catalog.values.errors import SQLError
from ...kvlayer.keys import ALL_KEYS, table_span
from ...kvlayer.span import Span, prefix_end

_HEX = "0x"


class TargetError(ValueError):
    """The text names no keys; the message says which forms do."""


class Target:
    """Reads the forms in which keys are named.

    orders, public.orders, shop.public.orders    all indexes of a table
    0x740000006a                                 every key that begins so
    0x74000000-0x74000001                        from the first key (inclusive) to the second
    (nothing)                                    every key
    """

    @staticmethod
    def parse(text: str | None, names: KeyNames) -> Span:
        """Raises TargetError."""
        if not text:
            return ALL_KEYS
        if text.startswith(_HEX):
            return _hex_span(text)
        try:
            name = TableName.resolve(text.split("."), current_database=DEFAULT_DATABASE)
        except SQLError as error:
            raise TargetError(str(error)) from error
        table = names.find(name)
        if table is None:
            raise TargetError(
                f"no table is named {name}: write a table, a key prefix 0x74..., or a span "
                "0x74...-0x75..."
            )
        return table_span(table.id)


def _hex_span(text: str) -> Span:
    start, dash, end = text.partition("-")
    try:
        low = _key(start)
        high = _key(end) if dash else prefix_end(low)
        found = Span(low, high)
    except ValueError as error:
        raise TargetError(f"{text!r} is no span of keys: {error}") from error
    shared = found.intersect(ALL_KEYS)
    if shared is None:
        raise TargetError(f"{text!r} holds no keys: they lie between 0x00 and 0xff")
    return shared


def _key(text: str) -> bytes:
    if not text.startswith(_HEX):
        raise ValueError(f"{text!r} does not begin with 0x")
    return bytes.fromhex(text[len(_HEX) :])
