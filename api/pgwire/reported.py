"""The session variables that clients are told of without asking: ParameterStatus."""

from __future__ import annotations

from collections.abc import Sequence

from ...catalog.rights.rights import Rights
from ...sql import Session
from ...sql.variables.variables import REPORTED
from . import replies


class Reported:
    """The values that a client was told last."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._version = -1
        self._rights: Rights | None = None
        self._told: dict[str, str] = {}

    def changes(self) -> Sequence[bytes]:
        """The frames that tell of those that have become others, which its client is to be sent."""
        # Whose rights are changed by others is told, too, though no variable was set.
        variables, rights = self._session.variables, self._session.rights
        if variables.version == self._version and rights is self._rights:
            return ()
        self._version, self._rights = variables.version, rights
        frames: list[bytes] = []
        for name, variable in REPORTED.items():
            value = variables.show(variable)
            if self._told.get(name) != value:
                self._told[name] = value
                frames.append(replies.parameter_status(name, value))
        return frames
