"""Shares of the log: a user that writes much waits while other users write, too.

Every command goes through one loop and one log, so that whoever writes megabytes a commit, one
after the other, takes the disk and the loop from all who write a row now and then:

    mallory   1 MB 1 MB 1 MB 1 MB 1 MB            1 MB .. 1 MB .. 1 MB .. 1 MB
    ada          ·     ·        ·          becomes      ·       ·     ·

A user's *debt* is what its sessions have written, less `kv.write_share.rate` for each second that
has passed. Where other users have committed meanwhile, a session that wrote part of the debt waits
before its next transaction until the debt is paid, a second at most. It never waits with locks in
hand, and alone it never waits.

The nearest in the anchor is admission control of writes (`kv.admission`), which hands out tokens
by what the disk takes; here a fixed rate is enough to leave room for small commits.
"""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from weakref import WeakValueDictionary

from .settings import Settings, declare_bytes

RATE = declare_bytes(
    "kv.write_share.rate",
    4 * 1024 * 1024,
    "bytes that one user may commit a second while other users commit, too; 0: any",
)

FREE_BYTES = 1024 * 1024
"""A debt that nobody waits for, and what a session may write of it before it waits."""

WAIT_SECONDS_MAX = 1.0

_session: ContextVar[SessionShare | None] = ContextVar("write_share", default=None)


def charge(size: int) -> None:
    """Adds a command of `size` bytes to what the running session has written, if one is running."""
    share = _session.get()
    if share is not None:
        share.charge(size)


def write_as(share: SessionShare | None) -> SessionShare | None:
    """From here on the context's commands are this session's. Returns whose they were before."""
    before = _session.get()
    _session.set(share)
    return before


class WriteShares:
    """The debts of all users of a node."""

    def __init__(self, settings: Settings) -> None:
        self.commands = 0
        self._settings = settings
        self._users: WeakValueDictionary[str, UserShare] = WeakValueDictionary()

    @property
    def rate(self) -> int:
        """Bytes a second; 0 for any."""
        return self._settings.get(RATE)

    def of_session(self, user: str) -> SessionShare:
        share = self._users.get(user)
        if share is None:
            share = self._users[user] = UserShare(self)
        return SessionShare(share)


class UserShare:
    """The debt of one user, which all of its sessions add to."""

    def __init__(self, shares: WriteShares) -> None:
        self.debt = 0.0
        self.commands = 0
        self._shares = shares
        self._paid_at = 0.0
        self._others_before = 0

    def charge(self, size: int) -> None:
        self.debt += size
        self.commands += 1
        self._shares.commands += 1

    def seconds_owed(self, now: float) -> float:
        """The seconds for which a session has to wait at `now`, a time of the loop: 0 where no
        other user has written since this was asked last."""
        others = self._shares.commands - self.commands
        alone, self._others_before = others == self._others_before, others
        rate = self._shares.rate
        if alone or not rate:
            self.debt, self._paid_at = 0.0, now
            return 0.0
        self.debt = max(0.0, self.debt - rate * (now - self._paid_at))
        self.debt = min(self.debt, FREE_BYTES + rate * WAIT_SECONDS_MAX)
        self._paid_at = now
        return max(0.0, self.debt - FREE_BYTES) / rate


class SessionShare:
    """The bytes that one session has written since it waited last."""

    __slots__ = ("_user", "_written", "due")

    def __init__(self, user: UserShare) -> None:
        self._user = user
        self._written = 0
        self.due = False
        """Whether `settle` may have to wait."""

    def charge(self, size: int) -> None:
        self._written += size
        self.due = self._written > FREE_BYTES
        self._user.charge(size)

    async def settle(self) -> None:
        """Waits until the user's debt is paid, a second at most. Call it without locks in hand."""
        self._written, self.due = 0, False
        seconds = self._user.seconds_owed(asyncio.get_running_loop().time())
        if seconds > 0:
            await asyncio.sleep(seconds)
