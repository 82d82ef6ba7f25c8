"""Functions of texts for BYTEA, digests, and its escape format."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping

from ....catalog.values.errors import SQLError


def hashed(algorithm: str) -> Callable[[bytes], bytes]:
    return lambda value: hashlib.new(algorithm, value).digest()


def trimmed(value: bytes, bytes_cut: bytes, side: str) -> bytes:
    """`value` without the bytes of `bytes_cut` at its ends: at both, `l` or `r`."""
    match side:
        case "l":
            return value.lstrip(bytes_cut)
        case "r":
            return value.rstrip(bytes_cut)
    return value.strip(bytes_cut)


def part(value: bytes, start: int, count: int | None = None) -> bytes:
    """substring() of bytes."""
    if count is None:
        return value[max(start - 1, 0) :]
    if count < 0:
        raise SQLError("22011", "negative substring length not allowed")
    return value[max(start - 1, 0) : max(start - 1 + count, 0)]


def position(searched: bytes, value: bytes) -> int:
    """Where the first stands in the second, from 1 on, or 0."""
    return value.find(searched) + 1


def joined(rows: Iterable[Mapping[str, bytes | None]]) -> bytes | None:
    """string_agg() of rows of a value `a` and what stands before it, `b`."""
    there = [row for row in rows if row["a"] is not None]
    if not there:
        return None
    made = [there[0]["a"]]
    for row in there[1:]:
        made += [row["b"], row["a"]]
    return b"".join(piece for piece in made if piece is not None)


def overlaid(value: bytes, new: bytes, start: int, count: int | None = None) -> bytes:
    """`value` with `new` in the place of `count` bytes from the first, 1, on."""
    count = len(new) if count is None else count
    if start <= 0:
        raise SQLError("22011", "negative substring length not allowed")
    return value[: start - 1] + new + value[max(start - 1 + count, 0) :]


def escaped(value: bytes) -> str:
    r"""encode(…, 'escape'): zero and what is no ASCII as `\nnn`, a backslash twice."""
    return "".join(map(_written, value))


def _written(byte: int) -> str:
    if byte == ord("\\"):
        return "\\\\"
    return chr(byte) if 0 < byte < 0x80 else f"\\{byte:03o}"


def unescaped(text: str) -> bytes:
    """decode(…, 'escape')."""
    given, made, at = text.encode(), bytearray(), 0
    while at < len(given):
        if given[at] != ord("\\"):
            made.append(given[at])
            at += 1
        elif given[at + 1 : at + 2] == b"\\":
            made.append(given[at])
            at += 2
        else:
            digits = given[at + 1 : at + 4].decode("latin-1")
            if not _octal(digits):
                raise SQLError("22P02", "invalid input syntax for type bytea")
            made.append(int(digits, 8))
            at += 4
    return bytes(made)


def _octal(digits: str) -> bool:
    return len(digits) == 3 and digits[0] in "0123" and set(digits) <= set("01234567")
