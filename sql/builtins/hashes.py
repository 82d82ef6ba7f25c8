"""hashtext(): the hash that PostgreSQL keeps its tables of texts by.

Clients make numbers of names with them: `pg_advisory_lock(hashtext('migrations'))`. The algorithm
is Bob Jenkins's lookup3 (http://burtleburtle.net/bob/hash/doobs.html) with PostgreSQL's seed.
"""

from __future__ import annotations

from collections.abc import Sequence

_WORD = 0xFFFF_FFFF
_SEED = 0x9E37_79B9 + 3_923_095
_BLOCK = 12
_MIXED = (4, 6, 8, 16, 19, 4)
_FINISHED = (14, 11, 25, 16, 4, 14, 24)

Words = tuple[int, int, int]


def hashtext(text: str) -> int:
    """Returns PostgreSQL's hashtext() of a text: a signed 32-bit number."""
    data = text.encode()
    start = (_SEED + len(data)) & _WORD
    state = start, start, start
    whole = len(data) // _BLOCK * _BLOCK
    for place in range(0, whole, _BLOCK):
        state = _mixed(_added(state, data[place : place + _BLOCK]))
    tail = data[whole:]
    # The lowest byte of the last word is the length's, which is in the start already.
    padded = tail[:8].ljust(8, b"\0") + b"\0" + tail[8:].ljust(3, b"\0")
    _, _, low = _finished(_added(state, padded))
    return low - (1 << 32) if low >> 31 else low


def _added(state: Words, block: bytes) -> Words:
    a, b, c = (
        value + int.from_bytes(block[4 * place : 4 * place + 4], "little")
        for place, value in enumerate(state)
    )
    return a & _WORD, b & _WORD, c & _WORD


def _rotated(value: int, bits: int) -> int:
    return (value << bits | value >> (32 - bits)) & _WORD


def _mixed(state: Words) -> Words:
    words = [value & _WORD for value in state]
    for turn, bits in enumerate(_MIXED):
        first, second, last = turn % 3, (turn + 1) % 3, (turn + 2) % 3
        words[first] = (words[first] - words[last] & _WORD) ^ _rotated(words[last], bits)
        words[last] = words[last] + words[second] & _WORD
    return _three(words)


def _finished(state: Words) -> Words:
    words = list(state)
    for turn, bits in enumerate(_FINISHED):
        target, source = (turn + 2) % 3, (turn + 1) % 3
        words[target] = (words[target] ^ words[source]) - _rotated(words[source], bits) & _WORD
    return _three(words)


def _three(words: Sequence[int]) -> Words:
    a, b, c = words
    return a, b, c
