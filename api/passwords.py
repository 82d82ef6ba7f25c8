"""Passwords that clients send: compared one at a time beside the loop, and the fewer the more of
them are wrong.

To compare a password takes milliseconds on purpose, so it is done in a thread, and who may wait
for that thread is bounded. Whoever is wrong too often is refused for a while before anything is
compared:

    failures of one user from one address    1 … 5    6     7     8   …
    refused for                              –        1 s   2 s   4 s …   at most a minute

An address that is wrong for many users is slowed in the same way after its fiftieth failure. There
is no such count of a user alone: with it anybody could lock anybody out.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from math import ceil

from ..catalog.rights.audit import Audit, AuditEvent, NoAudit
from ..catalog.rights.users import Verifier, password_matches
from ..catalog.values.errors import SQLError
from ..kvlayer.metrics import Metrics
from ..kvlayer.process.offload import Offload

WRONG_PASSWORD = "28P01"
WAITING_MAX = 64
"""Passwords that wait to be compared, at both doors: a seventh of a second's work."""

USER_FAILURES_FREE = 5
"""Failed logins of one user from one address before answers slow down: a person mistypes."""

ADDRESS_FAILURES_FREE = 50
"""Failed logins of all users from one address: many people may come through one proxy."""

REFUSED_SECONDS_MAX = 60.0
FORGOTTEN_SECONDS = 900.0
"""Failures count until there was none for so long."""

REMEMBERED_MAX = 10_000
"""Pairs of user and address, and addresses, whose failures are known; the oldest is forgotten."""


class _Failures:
    """The failures of one user or address, and the time until which it is refused."""

    __slots__ = ("count", "last_at", "refused_until")

    def __init__(self) -> None:
        self.count = 0
        self.last_at = 0.0
        self.refused_until = 0.0


class Guesses:
    """Failed attempts by user and address. `now` is a clock of seconds that never goes back."""

    def __init__(
        self, metrics: Metrics, now: Callable[[], float], audit: Audit | None = None
    ) -> None:
        self._metrics = metrics
        self._now = now
        self._audit = audit or NoAudit()
        self._failures: OrderedDict[tuple[str | None, str], _Failures] = OrderedDict()

    def check(self, user: str, address: str) -> None:
        """Raises SQLError 53300 while the address may not try."""
        now = self._now()
        pairs = ((user, address), (None, address))
        until = max(
            (known.refused_until for pair in pairs if (known := self._failures.get(pair))),
            default=0.0,
        )
        if until > now:
            self._metrics.add("authentication_slowed_total")
            raise SQLError(
                "53300",
                f'too many failed attempts to log in as user "{user}" from {address}',
                hint=f"Try again in {ceil(until - now)} s.",
            )

    def failed(self, user: str, address: str) -> None:
        self._metrics.add("authentication_failures_total")
        self._audit.record(
            AuditEvent(event="Login", user=user, outcome=WRONG_PASSWORD, address=address)
        )
        self._count((user, address), USER_FAILURES_FREE)
        self._count((None, address), ADDRESS_FAILURES_FREE)

    def succeeded(self, user: str, address: str) -> None:
        """The user's failures from there are forgiven; those for others from there are not."""
        self._failures.pop((user, address), None)

    def _count(self, pair: tuple[str | None, str], free: int) -> None:
        now = self._now()
        failures = self._failures.setdefault(pair, _Failures())
        if failures.last_at < now - FORGOTTEN_SECONDS:
            failures.count = 0
        failures.count += 1
        failures.last_at = now
        if failures.count > free:
            doublings = min(failures.count - free - 1, 10)
            failures.refused_until = now + min(2.0**doublings, REFUSED_SECONDS_MAX)
        self._failures.move_to_end(pair)
        if len(self._failures) > REMEMBERED_MAX:
            self._failures.popitem(last=False)


class Passwords:
    """Compares passwords with verifiers for both doors of a node."""

    def __init__(self, offload: Offload, guesses: Guesses) -> None:
        self.guesses = guesses
        self._offload = offload
        # One at a time: attempts sent at once must not all pass before the first has failed.
        self._turn = asyncio.Lock()
        self._waiting = 0

    async def match(self, password: str, verifier: Verifier, *, user: str, address: str) -> bool:
        """Whether the password is the verifier's. Raises SQLError 53300 for who is to wait."""
        if self._waiting >= WAITING_MAX:
            raise SQLError("53300", "too many passwords are being checked", hint="Try again.")
        self._waiting += 1
        try:
            async with self._turn:
                self.guesses.check(user, address)
                right = await self._offload.run(partial(password_matches, password, verifier))
        finally:
            self._waiting -= 1
        if right:
            self.guesses.succeeded(user, address)
        else:
            self.guesses.failed(user, address)
        return right
