"""The order of documents: that of PostgreSQL's btree over jsonb.

    null < texts < numbers < false < true < arrays < objects

More items are greater than fewer, and then the first that differs decides; objects are compared by
their first name, its value, the next name. A document that is a scalar is compared as the array of
itself, before an array of one item, so `[]` comes before everything. Numbers are equal whatever
zeros are at their ends.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from ....catalog.values.json_text import read_json

_NULL, _TEXT, _NUMBER, _FALSE, _TRUE, _ARRAY, _OBJECT = (bytes([rank]) for rank in range(1, 8))
_LENGTH_BYTES = 4
_EXPONENT_ZERO = 1 << 31


def sort_key(document: str) -> bytes:
    """Bytes that are in the order of the documents."""
    value = read_json(document)
    if isinstance(value, dict | list):
        written = _key(value)
        # Behind the number of items: whether it is a scalar.
        place = 1 + _LENGTH_BYTES if isinstance(value, list) else len(written)
        return written[:place] + b"\x01" + written[place:]
    return _ARRAY + _length(1) + b"\x00" + _key(value)


def _key(value: Any) -> bytes:
    match value:
        case None:
            return _NULL
        case bool():
            return _TRUE if value else _FALSE
        case str():
            return _TEXT + value.encode() + b"\x00"  # no text of a document has a NUL
        case list():
            return b"".join([_ARRAY, _length(len(value)), *map(_key, value)])
        case dict():
            parts = [_OBJECT, _length(len(value))]
            for name, item in value.items():
                parts += (name.encode(), b"\x00", _key(item))
            return b"".join(parts)
    return _NUMBER + _number(Decimal(value))


def _length(count: int) -> bytes:
    return count.to_bytes(_LENGTH_BYTES, "big")


def _number(number: Decimal) -> bytes:
    """The sign, the exponent and the digits; of negative ones with every bit turned."""
    if not number:
        return b"\x80"
    digits = "".join(map(str, number.as_tuple().digits)).rstrip("0")
    written = (number.adjusted() + _EXPONENT_ZERO).to_bytes(5, "big") + digits.encode() + b"\x00"
    if number > 0:
        return b"\x81" + written
    return b"\x7f" + bytes(255 - byte for byte in written)
