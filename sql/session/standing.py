"""Settings of a session's statements, read from its variables once for each change of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from ..runtime.authorization import current_user
from ..runtime.transactions import Modes, lock_timeout
from ..variables.variables import (
    DEFAULT_DEFERRABLE,
    DEFAULT_ISOLATION,
    DEFAULT_READ_ONLY,
    IDLE_IN_TRANSACTION_TIMEOUT,
    STATEMENT_TIMEOUT,
    SessionVariables,
    Variable,
)

MODES: Mapping[str, Variable[Any]] = {
    "isolation": DEFAULT_ISOLATION,
    "read_only": DEFAULT_READ_ONLY,
    "deferrable": DEFAULT_DEFERRABLE,
}
"""The modes of transactions: the variable of each that new ones begin with."""


class Standing(Struct, frozen=True):
    """`user` is the user whose rights statements have. `lock_timeout` is in seconds, None for the
    store's setting. `modes` are those of new transactions. `timed` says that the time of
    statements, or between them, is limited."""

    version: int
    user: str
    lock_timeout: float | None
    modes: Modes
    timed: bool


def standing_of(variables: SessionVariables) -> Standing:
    """Returns what the variables say in their version of now."""
    get = variables.get
    return Standing(
        version=variables.version,
        user=current_user(variables),
        lock_timeout=lock_timeout(variables),
        modes=Modes(**{name: get(variable) for name, variable in MODES.items()}),
        timed=bool(get(STATEMENT_TIMEOUT) or get(IDLE_IN_TRANSACTION_TIMEOUT)),
    )
