"""Authentication: who a client is, by SCRAM-SHA-256, by a password in the clear, or by trust.

A conversation sends `request`, hands each answer to `receive`, and goes on until `done`. Whoever
does not exist is asked for a password like everybody else, and refused in the same words.
"""

from __future__ import annotations

import hashlib
import hmac
from enum import Enum
from random import Random

from scramp import ScramException, ScramMechanism

from ...catalog.errors import SQLError
from ...catalog.users import ITERATIONS, MECHANISM, SALT_BYTES, User, Verifier, password_matches
from . import replies
from .messages import decode_text

NONCE_BYTES = 18
STAND_IN = "user"


class Method(Enum):
    """How clients prove who they are. The value is what the command line calls it."""

    SCRAM = "scram-sha-256"
    PASSWORD = "password"  # in the clear, and so only inside TLS
    TRUST = "trust"  # whoever says so is believed: loopback only, with --insecure


def refused(name: str) -> SQLError:
    return SQLError("28P01", f'password authentication failed for user "{name}"')


class Trusting:
    """Nothing is asked, but the user must exist."""

    done = True

    def __init__(self, name: str, user: User | None) -> None:
        if user is None:
            raise SQLError("28000", f'role "{name}" does not exist')

    def request(self) -> bytes:
        return b""

    def receive(self, body: bytes) -> bytes:
        raise AssertionError("nothing was asked")


class Cleartext:
    """The password itself, compared by its verifier."""

    def __init__(self, name: str, user: User | None) -> None:
        self.done = False
        self._name = name
        self._verifier = user.verifier if user is not None else None

    def request(self) -> bytes:
        return replies.CLEARTEXT_PASSWORD

    def receive(self, body: bytes) -> bytes:
        """Raises SQLError 28P01."""
        if not body.endswith(b"\0"):
            raise SQLError("08P01", "invalid password packet size")
        verifier = self._verifier
        password = decode_text(body[:-1])
        if verifier is None or not password_matches(password, verifier):
            raise refused(self._name)
        self.done = True
        return b""


class Scram:
    """SCRAM-SHA-256: neither side shows the other what it could use elsewhere."""

    def __init__(self, name: str, user: User | None, random: Random, decoy_key: bytes) -> None:
        self.done = False
        self._name = name
        known = user.verifier if user is not None else None
        self._verifier = known or decoy_verifier(name, decoy_key)
        self._exists = known is not None
        nonce = random.randbytes(NONCE_BYTES).hex()
        self._server = ScramMechanism(MECHANISM).make_server(self._keys, s_nonce=nonce)
        self._begun = False

    def _keys(self, username: str) -> tuple[bytes, bytes, bytes, int]:
        # The name in the exchange is ignored, as PostgreSQL does: that of the start-up counts.
        verifier = self._verifier
        return verifier.salt, verifier.stored_key, verifier.server_key, verifier.iterations

    def request(self) -> bytes:
        return replies.sasl_mechanisms([MECHANISM])

    def receive(self, body: bytes) -> bytes:
        """What is answered. Raises SQLError."""
        try:
            return self._final(body) if self._begun else self._first(body)
        except ScramException as error:
            if self._begun and error.server_error is not None:
                raise refused(self._name) from error
            raise SQLError("08P01", f"malformed SCRAM message: {error}") from error

    def _first(self, body: bytes) -> bytes:
        mechanism, _, rest = body.partition(b"\0")
        if mechanism.decode("latin-1") != MECHANISM:
            raise SQLError("08P01", "client selected an invalid SASL authentication mechanism")
        length = int.from_bytes(rest[:4], "big", signed=True)
        if len(rest) < 4 or length != len(rest) - 4:
            raise SQLError("08P01", "malformed SCRAM message: its length does not fit")
        self._set_client_first(decode_text(rest[4:]))
        answer: str = self._server.get_server_first()
        self._begun = True
        return replies.sasl_continue(answer)

    def _set_client_first(self, message: str) -> None:
        """libpq leaves the name in the exchange empty, which scramp takes for a mistake.

        So scramp reads another name, which counts for nothing; what both sides sign is the message
        as it was sent.
        """
        header, mark, rest = message.partition(",n=,")
        self._server.set_client_first(f"{header},n={STAND_IN},{rest}" if mark else message)
        if mark:
            self._server.client_first_bare = f"n=,{rest}"

    def _final(self, body: bytes) -> bytes:
        self._server.set_client_final(decode_text(body))
        if not self._exists:
            raise refused(self._name)
        self.done = True
        return replies.sasl_final(self._server.get_server_final())


def decoy_verifier(name: str, key: bytes) -> Verifier:
    """The verifier of a user who does not exist: the same each time it is asked for."""
    salt = hmac.digest(key, name.encode(), hashlib.sha256)[:SALT_BYTES]
    return Verifier(ITERATIONS, salt, hmac.digest(key, salt, "sha256"), key[:32].ljust(32, b"\0"))


Exchange = Trusting | Cleartext | Scram
