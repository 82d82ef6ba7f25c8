"""The order of a key's versions, as a sink is handed them: no new one behind a later one."""

from __future__ import annotations

from tailrace.changefeed.contract.changes import ChangeBatch
from tailrace.kvlayer.clock import Timestamp


class KeyOrder:
    """What one attempt of a feed handed to its sink.

    A version may come again, behind a range feed that was restarted; one that has not been seen is
    above all that were, those that backfills show as of a schema change among them. Keys are those
    of the store: under another primary key a row is another one, and comes behind all others.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._seen: dict[bytes, set[Timestamp]] = {}
        self._newest: dict[bytes, Timestamp] = {}

    def note(self, batch: ChangeBatch) -> None:
        for key, at in zip(batch.keys, batch.timestamps, strict=True):
            seen = self._seen.setdefault(key, set())
            if at in seen:
                continue
            newest = self._newest.get(key)
            assert newest is None or newest < at, (
                f"{self._name}: {batch.kind} {key!r}@{at} of {batch.descriptor} behind {newest}"
            )
            seen.add(at)
            self._newest[key] = at
