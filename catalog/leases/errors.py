"""Errors of leases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...kvlayer.clock import Timestamp, format_timestamp
from ..values.errors import SQLError


class DescriptorUnavailable(SQLError):
    """The table that was to be leased never was, or is dropped."""

    def __init__(self, table_id: int, message: str) -> None:
        super().__init__("42P01", message)
        self.table_id = table_id


class DescriptorMissing(DescriptorUnavailable):
    def __init__(self, table_id: int) -> None:
        super().__init__(table_id, f"relation with id {table_id} does not exist")


class DescriptorDropped(DescriptorUnavailable):
    """Timestamps below `dropped_at` can still be served, from history."""

    def __init__(self, table_id: int, name: str, dropped_at: Timestamp) -> None:
        super().__init__(table_id, f'relation "{name}" does not exist: it was dropped')
        self.dropped_at = dropped_at


class LeaseBeyondSession(SQLError):
    """No session covers the timestamp: it is too far ahead, or the store does not acknowledge."""

    def __init__(self, table_id: int, at: Timestamp, expiration: Timestamp) -> None:
        super().__init__(
            "58000",
            f"no lease on relation with id {table_id} reaches {format_timestamp(at)}",
            detail=f"The node's liveness session is good until {format_timestamp(expiration)}.",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseHolder:
    """A holder of a lease that a schema change waits for."""

    version: int
    node_id: int
    session_id: str
    since: Timestamp
    session_expiration: Timestamp

    def __str__(self) -> str:
        return (
            f"node {self.node_id} (session {self.session_id}) holds version {self.version} "
            f"since {format_timestamp(self.since)}, and its session lives until "
            f"{format_timestamp(self.session_expiration)}"
        )


class LeaseWaitTimeout(SQLError):
    """Leases on a descriptor did not go away in time."""

    def __init__(
        self, table_id: int, waited_for: str, seconds: float, holders: Sequence[LeaseHolder]
    ) -> None:
        super().__init__(
            "55P03",
            f"relation with id {table_id} is still leased after a wait of {seconds:g} s "
            f"for {waited_for}",
            detail="; ".join(map(str, holders)) + "." if holders else "It is not there.",
            hint="End the transactions that use the table, or stop the nodes named.",
        )
        self.holders = tuple(holders)
