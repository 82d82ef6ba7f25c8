"""The history of a store: which incarnations wrote its log, and where each of them began.

Every opening of a store is an *incarnation* with an id of its own. A data folder that was copied
does not know that it is a copy, and neither does the folder that it was copied from; but each of
them is opened under another id, and so the two logs differ from there on:

    the store          A from 1, B from 120          copied while it was closed at 119
    the copy           A from 1, C from 120

A *position* says how much of which log somebody has seen. `B up to 130` lies in the past of the
store, and not in that of the copy, whose entries 120 to 130 are others. `A up to 125` lies in
neither: a log in which A came further than 119 was lost.
"""

from __future__ import annotations

from random import Random

import msgspec

from . import keys
from .command import EngineDelete, EnginePut
from .engine import Engine
from .span import prefix_end

INCARNATIONS_MAX = 10_000
"""How many openings a store remembers, some 60 bytes each. What was seen before the oldest of them
can be told apart no more, and counts as another store's."""

_PREFIX = keys.LOCAL + b"incarnation/"


class StorePosition(msgspec.Struct, array_like=True, frozen=True, kw_only=True):
    """Entries of a store's log up to `index`, as the incarnation found or wrote them."""

    incarnation: str
    index: int


class Incarnation(msgspec.Struct, array_like=True, frozen=True):
    """One opening of a store. Entries from `begins_at` on are its own, up to the next one's."""

    id: str
    begins_at: int


class StoreHistory:
    """The incarnations that a store remembers, oldest first; the last is the one in force."""

    def __init__(self, incarnations: list[Incarnation]) -> None:
        self._incarnations = incarnations

    @classmethod
    def load(cls, engine: Engine) -> StoreHistory:
        found = engine.scan(_PREFIX, prefix_end(_PREFIX))
        return cls([_decode(value) for _, value in found])

    def begin(self, random: Random, *, at_index: int) -> list[EnginePut | EngineDelete]:
        """Another incarnation, whose first entry is the one that writes what is returned."""
        known = self._incarnations
        assert not known or known[-1].begins_at < at_index, (known[-1], at_index)
        begun = Incarnation(random.randbytes(16).hex(), at_index)
        known.append(begun)
        forgotten, known[:] = known[:-INCARNATIONS_MAX], known[-INCARNATIONS_MAX:]
        return [
            EnginePut(_key(begun), _encode(begun)),
            *[EngineDelete(_key(each)) for each in forgotten],
        ]

    @property
    def incarnation(self) -> str:
        """The id of the incarnation in force."""
        return self._incarnations[-1].id

    def holds(self, position: StorePosition) -> bool:
        """Whether everything up to `position` is in this store's log, or was."""
        following = [*self._incarnations[1:], None]
        for incarnation, successor in zip(self._incarnations, following, strict=True):
            if incarnation.id == position.incarnation:
                return successor is None or position.index < successor.begins_at
        return False

    def __repr__(self) -> str:
        return f"<StoreHistory {', '.join(map(str, self._incarnations[-3:]))}>"


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Incarnation).decode


def _key(incarnation: Incarnation) -> bytes:
    return _PREFIX + incarnation.begins_at.to_bytes(8, "big")
