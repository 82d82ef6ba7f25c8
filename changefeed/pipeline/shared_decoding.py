"""Shared decoding: feeds of one node that follow the same table decode each of its rows once.

Range feeds hand the very same batch to all of them, in one step of the loop, so the lanes take the
same slices one after the other:

    feed 1 takes [b7 b8]   decoded, and kept for two more
    feed 2 takes [b7 b8]   found
    feed 3 takes [b7 b8]   found, and let go
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ...catalog.descriptors.descriptor import TableDescriptor
from ...kvlayer.events import ValueBatch
from ..contract.changes import ChangeBatch, Form, StageTimes
from ..targets import Versions
from .decode import decode

KEPT_MAX = 16
"""Slices, of at most a few megabytes each: feeds in step need the last, and others decode anew."""

_Key = tuple[Form, bool, int, int, tuple[int, ...]]


@dataclass(slots=True)
class _Kept:
    """A decoded slice. It holds on to `batches`, whose identities are its key."""

    batches: Sequence[ValueBatch]
    changes: ChangeBatch
    wanted: int


class SharedDecoding:
    """Decodes slices of live rows, each once for all lanes that were entered for its table."""

    def __init__(self) -> None:
        self._lanes: Counter[int] = Counter()
        self._kept: dict[_Key, _Kept] = {}
        self.found = 0
        """The number of slices that were there already."""

    def enter(self, table_id: int) -> None:
        """Notes one more lane that follows the table."""
        self._lanes[table_id] += 1

    def leave(self, table_id: int) -> None:
        """A lane that was entered is gone."""
        assert self._lanes[table_id] > 0, table_id
        self._lanes[table_id] -= 1
        if self._lanes[table_id] <= 1:  # nobody is left to share with
            self._kept = {key: kept for key, kept in self._kept.items() if key[2] != table_id}
        if self._lanes[table_id] == 0:
            del self._lanes[table_id]

    def decode(
        self,
        batches: Sequence[ValueBatch],
        versions: Versions,
        descriptor: TableDescriptor,
        *,
        stages: StageTimes,
        form: Form,
    ) -> ChangeBatch:
        """The changes that the rows of `batches` are under `descriptor`. `versions` are those rows,
        in their order. Bodies cost nothing, and are shared by themselves."""
        others = self._lanes[descriptor.id] - 1
        if others <= 0 or form.undecoded:
            return decode(versions, descriptor, stages=stages, form=form)
        told = form, bool(versions.previous)
        key = (*told, descriptor.id, descriptor.version, tuple(map(id, batches)))
        kept = self._kept.get(key)
        if kept is None:
            changes = decode(versions, descriptor, stages=stages, form=form)
            self._kept[key] = _Kept(batches, changes, others)
            if len(self._kept) > KEPT_MAX:
                del self._kept[next(iter(self._kept))]
            return changes
        self.found += 1
        kept.wanted -= 1
        if kept.wanted == 0:
            del self._kept[key]
        return replace(kept.changes, stages=stages)
