"""One life of a node's liveness session."""

from __future__ import annotations

from ...kvlayer.clock import Timestamp, format_timestamp


class Incarnation:
    """One life of a liveness session: leases and job claims are made under it, and end with it.

    `expiration` is the last *acknowledged* one, a timestamp of the store. It only rises, and never
    again once the incarnation is lost: a node whose session expired, or was removed by another,
    goes on under a new incarnation, with nothing carried over.
    """

    __slots__ = ("expiration", "lost", "node_id", "session_id")

    def __init__(self, session_id: str, node_id: int, expiration: Timestamp) -> None:
        self.session_id = session_id
        self.node_id = node_id
        self.expiration = expiration
        self.lost = False

    def extend(self, expiration: Timestamp) -> bool:
        """The store acknowledged `expiration`; says whether that is later than before."""
        assert not self.lost, self
        if expiration <= self.expiration:
            return False
        self.expiration = expiration
        return True

    def end(self, at: Timestamp) -> None:
        """Lost; and nothing at or above `at` was done under it."""
        self.lost = True
        self.expiration = min(self.expiration, at)

    def __repr__(self) -> str:
        state = "lost" if self.lost else f"until {format_timestamp(self.expiration)}"
        return f"<Incarnation node {self.node_id} session {self.session_id} {state}>"
