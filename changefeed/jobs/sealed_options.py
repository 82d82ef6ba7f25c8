"""Options that are secret, as a job's row keeps them.

    webhook_auth_header = 'Bearer secret'      webhook_auth_header = '<sealed, in base64>'

Who has no use for them, and so for the key, reads the others by `ChangefeedDetails.parsed_options`.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping

from ..contract.options import SECRET_OPTIONS
from .services import ChangefeedServices


def sealed_options(
    services: ChangefeedServices, given: Mapping[str, str | None]
) -> dict[str, str | None]:
    """The options of a statement as they are stored."""
    return {
        name: b64encode(services.sealer.seal(text)).decode()
        if text is not None and name.lower() in SECRET_OPTIONS
        else text
        for name, text in given.items()
    }


def opened_options(
    services: ChangefeedServices, stored: Mapping[str, str | None]
) -> dict[str, str | None]:
    """The options of the statement. Raises SinkError where another key has sealed them."""
    return {
        name: services.sealer.open(b64decode(text))
        if text is not None and name.lower() in SECRET_OPTIONS
        else text
        for name, text in stored.items()
    }
