"""Authentication: who a client is, by SCRAM-SHA-256, by a password in the clear, or by trust.

A conversation sends `request`, hands each answer to `receive`, and goes on until `done`. Whoever
does not exist is asked for a password like everybody else, and refused in the same words.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass
from enum import Enum
from random import Random

from scramp import ScramException, ScramMechanism
from scramp.core import ScramServer

from ...catalog.rights.users import ITERATIONS, MECHANISM, SALT_BYTES, User, Verifier
from ...catalog.values.errors import SQLError
from ..passwords import Guesses, Passwords
from . import replies
from .messages import decode_text

NONCE_BYTES = 18
STAND_IN = "user"
BOUND_MECHANISM = f"{MECHANISM}-PLUS"
BINDING = "tls-server-end-point"
"""The hash of the server's certificate (RFC 5929): what libpq and JDBC bind by."""


class Method(Enum):
    """The ways of authentication. The value is the word of the command line."""

    SCRAM = "scram-sha-256"
    PASSWORD = "password"  # in the clear, and so only inside TLS
    TRUST = "trust"  # whoever says so is believed: loopback only, with --insecure


@dataclass(frozen=True, slots=True)
class Claim:
    """A client's claim of a user, the address that it comes from, and what is known of the user.

    Where there is no such user, or none with a password, the verifier is one that no password
    matches: it has the same salt each time, and to be refused takes as long as with a real one.
    """

    name: str
    address: str
    user: User | None
    decoy_key: bytes

    @property
    def exists(self) -> bool:
        return self.user is not None and self.user.verifier is not None

    @property
    def verifier(self) -> Verifier:
        known = None if self.user is None else self.user.verifier
        return known or decoy_verifier(self.name, self.decoy_key)

    def refused(self) -> SQLError:
        return SQLError("28P01", f'password authentication failed for user "{self.name}"')


class Trusting:
    """Asks for no proof, but the user must exist."""

    done = True

    def __init__(self, claim: Claim) -> None:
        if claim.user is None:
            raise SQLError("28000", f'role "{claim.name}" does not exist')

    def request(self) -> bytes:
        return b""

    async def receive(self, body: bytes) -> bytes:
        raise AssertionError("nothing was asked")


class Cleartext:
    """The password itself, compared by its verifier."""

    def __init__(self, claim: Claim, passwords: Passwords) -> None:
        self.done = False
        self._claim = claim
        self._passwords = passwords

    def request(self) -> bytes:
        return replies.CLEARTEXT_PASSWORD

    async def receive(self, body: bytes) -> bytes:
        """Raises SQLError 28P01, or 53300 for an address that was wrong too often."""
        if not body.endswith(b"\0"):
            raise SQLError("08P01", "invalid password packet size")
        claim = self._claim
        right = await self._passwords.match(
            decode_text(body[:-1]), claim.verifier, user=claim.name, address=claim.address
        )
        if not right or not claim.exists:
            raise claim.refused()
        self.done = True
        return b""


class Scram:
    """SCRAM-SHA-256: neither side shows the other what it could use elsewhere.

    With `binding`, the server certificate's hash, SCRAM-SHA-256-PLUS is offered first: client and
    server then prove to each other that they end the same TLS connection, so that nobody stands
    between them. A client that could have taken it and says that it was not offered is refused,
    for somebody has taken the offer away.
    """

    def __init__(
        self, claim: Claim, guesses: Guesses, random: Random, binding: bytes | None
    ) -> None:
        self.done = False
        self._claim = claim
        self._guesses = guesses
        self._binding = None if binding is None else (BINDING, binding)
        self._mechanisms = [MECHANISM] if binding is None else [BOUND_MECHANISM, MECHANISM]
        self._nonce = random.randbytes(NONCE_BYTES).hex()
        self._server: ScramServer | None = None

    def _keys(self, username: str) -> tuple[bytes, bytes, bytes, int]:
        # The name in the exchange is ignored, as PostgreSQL does: that of the start-up counts.
        verifier = self._claim.verifier
        return verifier.salt, verifier.stored_key, verifier.server_key, verifier.iterations

    def request(self) -> bytes:
        return replies.sasl_mechanisms(self._mechanisms)

    async def receive(self, body: bytes) -> bytes:
        """Returns the answer to a client's message. Raises SQLError."""
        server = self._server
        try:
            return self._first(body) if server is None else self._final(server, body)
        except ScramException as error:
            if server is not None and error.server_error is not None:
                self._guesses.failed(self._claim.name, self._claim.address)
                raise self._claim.refused() from error
            raise SQLError("08P01", f"malformed SCRAM message: {error}") from error

    def _first(self, body: bytes) -> bytes:
        self._guesses.check(self._claim.name, self._claim.address)
        chosen, _, rest = body.partition(b"\0")
        mechanism = chosen.decode("latin-1")
        if mechanism not in self._mechanisms:
            raise SQLError("08P01", "client selected an invalid SASL authentication mechanism")
        length = int.from_bytes(rest[:4], "big", signed=True)
        if len(rest) < 4 or length != len(rest) - 4:
            raise SQLError("08P01", "malformed SCRAM message: its length does not fit")
        server = ScramMechanism(mechanism).make_server(
            self._keys, channel_binding=self._binding, s_nonce=self._nonce
        )
        _set_client_first(server, decode_text(rest[4:]))
        answer: str = server.get_server_first()
        self._server = server
        return replies.sasl_continue(answer)

    def _final(self, server: ScramServer, body: bytes) -> bytes:
        claim = self._claim
        self._guesses.check(claim.name, claim.address)
        server.set_client_final(decode_text(body))
        if not claim.exists:
            raise claim.refused()
        self._guesses.succeeded(claim.name, claim.address)
        self.done = True
        return replies.sasl_final(server.get_server_final())


def _set_client_first(server: ScramServer, message: str) -> None:
    """libpq leaves the name in the exchange empty, which scramp takes for a mistake.

    So scramp reads another name, which counts for nothing; what both sides sign is the message
    as it was sent.
    """
    header, mark, rest = message.partition(",n=,")
    server.set_client_first(f"{header},n={STAND_IN},{rest}" if mark else message)
    if mark:
        server.client_first_bare = f"n=,{rest}"


def decoy_verifier(name: str, key: bytes) -> Verifier:
    """The verifier of a user who does not exist: the same each time it is asked for."""
    salt = hmac.digest(key, name.encode(), hashlib.sha256)[:SALT_BYTES]
    return Verifier(ITERATIONS, salt, hmac.digest(key, salt, "sha256"), key[:32].ljust(32, b"\0"))


Exchange = Trusting | Cleartext | Scram
