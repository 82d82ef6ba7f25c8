"""The two-version invariant, as a question to the store: who still holds an older version?"""

from __future__ import annotations

from ...kvlayer.clock import Timestamp
from ...kvlayer.errors import RetryableTransaction
from ...kvlayer.keys import encode_int
from ...kvlayer.span import Span
from ...kvlayer.txn import Transaction
from ..descriptors.system_tables import LEASE, SQLLIVENESS
from ..rows.row_codec import codec_for

_leases = codec_for(LEASE)
_sessions = codec_for(SQLLIVENESS)


class DescriptorLeased(RetryableTransaction):
    """A version may not be published: somebody still holds the one before the newest.

    The transaction may be run again once the holder has let go, or has died.
    """

    def __init__(
        self, descriptor_id: int, name: str, *, version: int, node_id: int, session_id: str
    ) -> None:
        super().__init__(
            f"node {node_id} (session {session_id}) still holds version {version} of "
            f'"{name}": at most two versions may be in use'
        )
        self.descriptor_id = descriptor_id
        self.version = version
        self.node_id = node_id
        self.session_id = session_id


def leases_on(descriptor_id: int) -> Span:
    """The rows of all leases on a descriptor, expired ones included."""
    return Span.prefix(LEASE.primary_span.start + encode_int(descriptor_id))


async def check_two_versions(
    transaction: Transaction, descriptor_id: int, name: str, newest: int
) -> None:
    """Raises DescriptorLeased if a version below `newest` is leased, which forbids the next one.

    A lease counts while it and its session are both unexpired at the transaction's read timestamp;
    what has expired there stays so at the commit timestamp, which is never lower. The rows are read
    by the transaction, so a lease that slips in makes it retry. Only older versions' leases and
    their sessions are read: a session that lives is written with each heartbeat, and the newest
    version is leased at any moment, also by the transaction's own first statement.
    """
    at = transaction.read_timestamp
    start = leases_on(descriptor_id).start
    for key, body in await transaction.scan(Span(start, start + encode_int(newest))):
        _, version, node_id, session_id, expiration = _leases.decode_row(key, body)
        assert isinstance(version, int)
        assert isinstance(node_id, int)
        assert isinstance(session_id, str)
        assert isinstance(expiration, int)
        if expiration <= at:
            continue
        if await _session_expiration(transaction, session_id) > at:
            raise DescriptorLeased(
                descriptor_id, name, version=version, node_id=node_id, session_id=session_id
            )


async def _session_expiration(transaction: Transaction, session_id: str) -> Timestamp:
    """Zero where there is no such session: it died and was removed."""
    key = _sessions.encode_key((session_id,))
    body = await transaction.get(key)
    if body is None:
        return Timestamp(0)
    expiration = _sessions.decode_row(key, body)[1]
    assert isinstance(expiration, int)
    return Timestamp(expiration)
