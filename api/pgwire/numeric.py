"""The binary form of numeric: a sign, a scale, and digits to the base of ten thousand.

1234567.8    digits 123, 4567, 8000; weight 1 (the first digit counts 10000^1); scale 1
"""

from __future__ import annotations

from decimal import Decimal
from struct import Struct, unpack

_HEAD = Struct("!HhHH")
_NEGATIVE, _NAN, _INFINITY, _MINUS_INFINITY = 0x4000, 0xC000, 0xD000, 0xF000
_BASE_DIGITS = 4


def write_numeric(value: Decimal) -> bytes:
    """A finite decimal."""
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int), value
    written = "".join(map(str, digits))
    if exponent > 0:
        written += "0" * exponent
    scale = max(0, -exponent)
    whole, fraction = written[: len(written) - scale], written[len(written) - scale :]
    if scale > len(written):
        whole, fraction = "", written.rjust(scale, "0")
    whole = whole.rjust(-(-len(whole) // _BASE_DIGITS) * _BASE_DIGITS, "0")
    fraction = fraction.ljust(-(-len(fraction) // _BASE_DIGITS) * _BASE_DIGITS, "0")
    text = whole + fraction
    groups = [int(text[at : at + _BASE_DIGITS]) for at in range(0, len(text), _BASE_DIGITS)]
    weight = len(whole) // _BASE_DIGITS - 1
    while groups and groups[0] == 0:
        groups.pop(0)
        weight -= 1
    while groups and groups[-1] == 0:
        groups.pop()
    if not groups:
        weight, sign = 0, 0
    head = _HEAD.pack(len(groups), weight, _NEGATIVE if sign else 0, scale)
    return head + b"".join(group.to_bytes(2, "big") for group in groups)


def read_numeric(raw: bytes) -> Decimal:
    """Raises ValueError or struct.error for bytes that are no numeric."""
    count, weight, sign, scale = _HEAD.unpack_from(raw)
    special = {_NAN: "NaN", _INFINITY: "Infinity", _MINUS_INFINITY: "-Infinity"}.get(sign)
    if special is not None:
        return Decimal(special)
    groups = unpack(f"!{count}H", raw[_HEAD.size :])
    if sign not in (0, _NEGATIVE) or any(group > 9999 for group in groups) or scale > 0x3FFF:
        raise ValueError("not a numeric")
    digits = "".join(f"{group:04d}" for group in groups) or "0"
    exponent = (weight - count + 1) * _BASE_DIGITS
    # The scale says how many digits stand behind the point, zeros among them.
    missing = max(0, exponent + scale)
    digits += "0" * missing
    exponent -= missing
    surplus = min(-scale - exponent, len(digits)) if exponent < -scale else 0
    if surplus > 0 and digits[len(digits) - surplus :].strip("0") == "":
        digits, exponent = digits[: len(digits) - surplus] or "0", exponent + surplus
    return Decimal((int(sign == _NEGATIVE), tuple(map(int, digits)), exponent))
