"""How a session stands between two statements."""

from __future__ import annotations

from enum import Enum


class SessionState(Enum):
    """The transaction status that ReadyForQuery tells a client."""

    IDLE = "idle"
    IN_TRANSACTION = "in a transaction"
    FAILED = "in a failed transaction"

    __hash__ = object.__hash__  # each answer looks one up, and Enum's is slow
