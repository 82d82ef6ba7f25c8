"""Sessions of the HTTP door: who holds a token, and until when.

A token is never kept: what is kept is its SHA-256, which whoever reads the table cannot send.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime

from ...kvlayer.access import Transaction
from ..descriptors.system_tables import WEB_SESSIONS
from ..rows.row_codec import codec_for
from ..store.descriptor_store import DescriptorReader

_sessions = codec_for(WEB_SESSIONS)

SESSIONS_MAX = 100
"""Sessions of one user: somebody who logs in for each request and never out ends the oldest."""


@dataclass(frozen=True, slots=True)
class WebSession:
    """Valid before `expires`."""

    user: str
    created: datetime
    expires: datetime


async def put_web_session(transaction: Transaction, token: str, session: WebSession) -> None:
    """Keeps a new session, and forgets those that have expired before it was made, and the user's
    oldest where there are too many."""
    over: list[bytes] = []
    standing: list[tuple[datetime, bytes]] = []
    for key, body in await transaction.scan(WEB_SESSIONS.primary_span):
        known = _decoded(key, body)
        if known.expires <= session.created:
            over.append(key)
        elif known.user == session.user:
            standing.append((known.created, key))
    over += [key for _, key in sorted(standing)[: max(len(standing) + 1 - SESSIONS_MAX, 0)]]
    if over:
        await transaction.delete(over)
    row = (_hash(token), session.user, session.created, session.expires)
    key, body = _sessions.encode_row(row)
    await transaction.put([key], [body])


async def find_web_session(
    reader: DescriptorReader, token: str, now: datetime
) -> WebSession | None:
    """The session of a token, unless it has expired."""
    key = _sessions.encode_key((_hash(token),))
    body = await reader.get(key)
    if body is None:
        return None
    session = _decoded(key, body)
    return session if now < session.expires else None


async def remove_web_session(transaction: Transaction, token: str) -> None:
    """Logs out. A token that is not known is logged out already."""
    key = _sessions.encode_key((_hash(token),))
    if await transaction.get(key) is not None:
        await transaction.delete([key])


async def remove_web_sessions(transaction: Transaction, user: str) -> None:
    """Logs a user out everywhere: its password has changed, or it may not log in any more.

    The row of the user is written in the same transaction, and whoever logs in reads it there.
    """
    rows = await transaction.scan(WEB_SESSIONS.primary_span)
    keys = [key for key, body in rows if _decoded(key, body).user == user]
    if keys:
        await transaction.delete(keys)


def _hash(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


def _decoded(key: bytes, body: bytes) -> WebSession:
    _, user, created, expires = _sessions.decode_row(key, body)
    assert isinstance(created, datetime), created
    assert isinstance(expires, datetime), expires
    return WebSession(str(user), created, expires)
