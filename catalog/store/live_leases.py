"""The two-version invariant, as a question to the store: who still holds an older version?"""

from __future__ import annotations

from ...kvlayer.errors import RetryableTransaction
from ...kvlayer.keys import encode_int
from ...kvlayer.span import Span
from ...kvlayer.txn import Transaction
from .lease_rows import LeaseRow, SessionRow, leases_of, session_key


class DescriptorLeased(RetryableTransaction):
    """A version may not be published: somebody still holds the one before the newest.

    The transaction may be run again once the holder has let go, or has died.
    """

    def __init__(self, name: str, lease: LeaseRow) -> None:
        super().__init__(
            f"node {lease.node_id} (session {lease.session_id}) still holds version "
            f'{lease.version} of "{name}": at most two versions may be in use'
        )
        self.lease = lease


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
    start = leases_of(descriptor_id).start
    for row in await transaction.scan(Span(start, start + encode_int(newest))):
        lease = LeaseRow.decode(*row)
        if lease.expiration <= at:
            continue
        key = session_key(lease.session_id)
        body = await transaction.get(key)  # None: the session died and was removed
        if body is not None and SessionRow.decode(key, body).alive_at(at):
            raise DescriptorLeased(name, lease)
