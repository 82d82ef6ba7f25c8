"""The oracle of schemas: which version of a table was canonical when."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

from tailrace.catalog.descriptors.descriptor import TableDescriptor
from tailrace.kvlayer.clock import MAX_TIMESTAMP, Timestamp


class VersionModel:
    """The published versions of one table, as the publishers were told."""

    def __init__(self) -> None:
        self.versions: list[TableDescriptor] = []
        self.frozen = False
        """As in `RowModel`."""

    def note(self, descriptor: TableDescriptor) -> None:
        if not self.frozen:
            assert descriptor.version == len(self.versions) + 1, (descriptor, self.versions)
            self.versions.append(descriptor)

    def adopt(self, found: Iterable[TableDescriptor]) -> None:
        """What recovery found: every version that was acknowledged, and at most one in doubt."""
        versions = list(found)
        known = len(self.versions)
        assert versions[:known] == self.versions, (versions, self.versions)
        assert len(versions) <= known + 1, (versions, self.versions)
        self.versions = versions
        self.frozen = False

    @property
    def last(self) -> TableDescriptor:
        return self.versions[-1]

    def canonical_at(self, at: Timestamp) -> TableDescriptor:
        place = bisect_right(self.versions, at, key=lambda version: version.modification_time)
        assert place > 0, (at, self.versions)
        return self.versions[place - 1]

    def published_at(self, version: int) -> Timestamp:
        """When a version was published; never, if it was not yet."""
        if version > len(self.versions):
            return MAX_TIMESTAMP
        return self.versions[version - 1].modification_time
