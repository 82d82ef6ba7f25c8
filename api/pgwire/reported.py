"""The session variables that clients are told of without asking: ParameterStatus."""

from __future__ import annotations

from ...catalog.rights.rights import Rights
from ...sql import Session
from ...sql.runtime.acting_user import SESSION_AUTHORIZATION
from ...sql.variables.client_variables import REPORTED
from . import replies
from .channel import Channel

_TOLD = {**REPORTED, "session_authorization": SESSION_AUTHORIZATION}


class Reported:
    """The values that a client was told last. `tell` writes those that have become others."""

    def __init__(self, channel: Channel, session: Session) -> None:
        self._channel = channel
        self._session = session
        self._version = -1
        self._rights: Rights | None = None
        self._told: dict[str, str] = {}

    def tell(self) -> None:
        # Whose rights are changed by others is told, too, though no variable was set.
        variables, rights = self._session.variables, self._session.rights
        if variables.version == self._version and rights is self._rights:
            return
        self._version, self._rights = variables.version, rights
        for name, variable in _TOLD.items():
            value = variables.show(variable)
            if self._told.get(name) != value:
                self._told[name] = value
                self._channel.write(replies.parameter_status(name, value))
