"""Audit: who came in, who was refused, and who changed what others may do or see.

A statement is recorded twice: as *asked* before it does anything, and with its outcome before its
client hears of it. What cannot be recorded is refused, so a log without an entry means that nothing
happened.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import msgspec

from ...kvlayer.settings import declare_bool

AUDIT = declare_bool(
    "sql.audit.enabled",
    True,
    "whether logins, refused logins and changes of users, rights, feeds and settings are recorded",
)


ASKED = "asked"
DONE = "ok"


class AuditEvent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line of the log. No field ever holds a password, a token or a sink's secret.

    `outcome` is ASKED, DONE, or the SQLSTATE of the refusal. `what` is what the action was about.
    """

    event: str
    user: str
    outcome: str
    address: str = ""
    application: str = ""
    database: str = ""
    what: Mapping[str, object] = {}


class Audit(Protocol):
    """A receiver of events."""

    def record(self, event: AuditEvent) -> None:
        """Raises SQLError 58030 where the event cannot be kept."""
        ...


class NoAudit:
    """A store in memory, which ends with its process, and its log with it."""

    def record(self, event: AuditEvent) -> None:
        pass
