"""A lease: the right to use one version of a descriptor, and what may be claimed of it."""

from __future__ import annotations

from collections.abc import Callable

from ...kvlayer.clock import Timestamp
from ...kvlayer.errors import StoreFull
from ..descriptors.descriptor import TableDescriptor
from .held_versions import HeldVersion


class Lease:
    """One reference to a version that this node holds.

    While it is not released, the version after next is not published (unless the node's session or
    the lease expires, which coverage tells). What was covered stays covered after the release.
    """

    __slots__ = ("_full", "_held", "_release", "descriptor")

    def __init__(
        self,
        held: HeldVersion,
        release: Callable[[HeldVersion], None],
        full: StoreFull | None = None,
    ) -> None:
        """`full` is why the version was read from history, where the disk was full."""
        self.descriptor: TableDescriptor = held.descriptor
        self._full = full
        self._held = held
        self._release: Callable[[HeldVersion], None] | None = release

    def coverage_end(self) -> Timestamp:
        """The first timestamp for which the version may not be claimed, as things stand."""
        held = self._held
        incarnation = held.incarnation
        if incarnation is not None and incarnation.expiration < held.ended_at:
            return incarnation.expiration
        return held.ended_at

    def covers(self, at: Timestamp) -> bool:
        return self.descriptor.modification_time <= at < self.coverage_end()

    def lapsed(self, at: Timestamp) -> bool:
        """Whether the session that the lease was taken under ended at or before `at`."""
        incarnation = self._held.incarnation
        return incarnation is not None and (incarnation.lost or incarnation.expiration <= at)

    def deadline(self) -> Timestamp:
        """A commit that relies on the version must lie below this. It is asked at the commit.

        Raises StoreFull where the disk had no room for a lease to rely on.
        """
        if self._full is not None:
            raise self._full
        return self.coverage_end()

    @property
    def canonical_until(self) -> Timestamp:
        """Up to there the version is known to have been the canonical one, from its modification
        time on. What it *covers* may reach further: there its successor may be canonical."""
        return self._held.canonical_until

    def prove_canonical(self, until: Timestamp) -> None:
        """Somebody read that the version was canonical at `until`."""
        self._held.prove_canonical(until)

    @property
    def released(self) -> bool:
        return self._release is None

    def release(self) -> None:
        """Lets go. Doing it twice is doing it once."""
        release, self._release = self._release, None
        if release is not None:
            release(self._held)

    def __repr__(self) -> str:
        return f"<Lease {'released ' * self.released}on {self._held}>"
