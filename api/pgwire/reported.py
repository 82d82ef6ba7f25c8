"""What clients are told of the session's variables without asking: ParameterStatus."""

from __future__ import annotations

from ...sql.runtime.acting_user import SESSION_AUTHORIZATION
from ...sql.variables.client_variables import IS_SUPERUSER, REPORTED
from ...sql.variables.variables import SessionVariables
from . import replies
from .channel import Channel

_TOLD = {**REPORTED, "session_authorization": SESSION_AUTHORIZATION}


class Reported:
    """The values that a client was told last. `tell` writes those that have become others."""

    def __init__(self, channel: Channel, variables: SessionVariables) -> None:
        self._channel = channel
        self._variables = variables
        self._state: tuple[int, str] | None = None
        self._told: dict[str, str] = {}

    def tell(self) -> None:
        # Whose rights are changed by others is told, too, though no variable was set.
        state = self._variables.version, self._variables.get(IS_SUPERUSER)
        if state == self._state:
            return
        self._state = state
        for name, variable in _TOLD.items():
            value = self._variables.show(variable)
            if self._told.get(name) != value:
                self._told[name] = value
                self._channel.write(replies.parameter_status(name, value))
