"""The rows of `system.lease` and `system.sqlliveness`.

A lease row's expiration is MAX_TIMESTAMP while its version is the newest: then the session alone
bounds it. A session row whose expiration is at or below a timestamp counts for nothing from that
timestamp on, whether or not somebody has removed it.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...kvlayer.clock import Timestamp
from ...kvlayer.keys import encode_int
from ...kvlayer.span import Span
from ..descriptors.system_tables import LEASE, SQLLIVENESS
from ..rows.records import RecordCodec

LEASES = LEASE.primary_span
SESSIONS = SQLLIVENESS.primary_span


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseRow:
    """A node holds a version of a descriptor, under a session."""

    descriptor_id: int
    version: int
    node_id: int
    session_id: str
    expiration: Timestamp

    @property
    def key(self) -> bytes:
        return _lease.encode_key((self.descriptor_id, self.version, self.node_id, self.session_id))

    def encode(self) -> tuple[bytes, bytes]:
        return _lease.encode(self)

    @classmethod
    def decode(cls, key: bytes, body: bytes) -> LeaseRow:
        return _lease.decode(key, body)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRow:
    """A node's liveness session. `epoch` counts the sessions that the node has had."""

    session_id: str
    expiration: Timestamp
    node_id: int
    epoch: int

    def alive_at(self, at: Timestamp) -> bool:
        return at < self.expiration

    def encode(self) -> tuple[bytes, bytes]:
        return _session.encode(self)

    @classmethod
    def decode(cls, key: bytes, body: bytes) -> SessionRow:
        return _session.decode(key, body)


_lease = RecordCodec(LEASE, LeaseRow)
_session = RecordCodec(SQLLIVENESS, SessionRow)


def session_key(session_id: str) -> bytes:
    return _session.encode_key((session_id,))


def leases_of(descriptor_id: int) -> Span:
    """The lease rows of one descriptor."""
    return Span.prefix(LEASES.start + encode_int(descriptor_id))
