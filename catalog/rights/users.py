"""Users: who may open a session, and the verifier of each one's password.

A password is never kept: what is kept is its SCRAM-SHA-256 verifier, in PostgreSQL's form

    SCRAM-SHA-256$<iterations>:<salt>$<stored key>:<server key>

with the last three in base 64. Users and roles are one kind of thing, in one name space: a user is
a role that may log in. `root` and the role `admin` always exist and cannot be dropped; `public` is
everybody, and no role. What roles may do is said in `rights`.
"""

from __future__ import annotations

import hmac
from base64 import b64decode, b64encode
from dataclasses import dataclass
from random import Random

from scramp import ScramException, ScramMechanism

from ...kvlayer.txn import Transaction
from ..descriptors.system_tables import USERS
from ..rows.row_codec import codec_for
from ..store.descriptor_store import DescriptorReader
from ..values.errors import SQLError

ROOT = "root"
ADMIN = "admin"
PUBLIC = "public"
MECHANISM = "SCRAM-SHA-256"
ITERATIONS = 4096
"""As PostgreSQL 15 has it: about two milliseconds for each guess."""

SALT_BYTES = 16
PASSWORD_BYTES_MAX = 1024
"""Preparing a password costs time with its length: 3 seconds for a megabyte."""

NAME_BYTES_MAX = 63
_RESERVED = frozenset({PUBLIC, "none", "node", "current_user", "session_user"})

_users = codec_for(USERS)


@dataclass(frozen=True, slots=True)
class Verifier:
    """A proof that a client knows a password, which does not tell the password."""

    iterations: int
    salt: bytes
    stored_key: bytes
    server_key: bytes

    def __str__(self) -> str:
        salt, stored, server = (
            b64encode(part).decode() for part in (self.salt, self.stored_key, self.server_key)
        )
        return f"{MECHANISM}${self.iterations}:{salt}${stored}:{server}"

    @classmethod
    def parse(cls, text: str) -> Verifier:
        """Raises ValueError for what is no verifier."""
        mechanism, counted, keys = text.split("$")
        if mechanism != MECHANISM:
            raise ValueError(f"not a verifier of {MECHANISM}: {mechanism}")
        iterations, salt = counted.split(":")
        stored, server = keys.split(":")
        parts = (b64decode(part, validate=True) for part in (salt, stored, server))
        return cls(int(iterations), *parts)


@dataclass(frozen=True, slots=True)
class User:
    """`verifier` is None for a user who has no password, and so cannot log in with one. A role
    without `login` is only there to have members."""

    name: str
    verifier: Verifier | None
    login: bool = True


_BUILT_IN = {ROOT: User(ROOT, None), ADMIN: User(ADMIN, None, login=False)}
"""Roles that exist without a row."""


def make_verifier(password: str, random: Random) -> Verifier:
    """The verifier of a password. Raises SQLError 22023 for a password that is none."""
    if _too_long(password):
        raise SQLError("22023", f"a password has at most {PASSWORD_BYTES_MAX} bytes")
    try:
        salt, stored, server, iterations = ScramMechanism(MECHANISM).make_auth_info(
            password, iteration_count=ITERATIONS, salt=random.randbytes(SALT_BYTES)
        )
    except ScramException as error:
        raise SQLError("22023", "the password has characters that passwords cannot have") from error
    return Verifier(iterations, salt, stored, server)


def password_matches(password: str, verifier: Verifier) -> bool:
    """Whether a password is the one of a verifier. Takes milliseconds, on purpose."""
    if _too_long(password):
        return False
    try:
        _, stored, _, _ = ScramMechanism(MECHANISM).make_auth_info(
            password, iteration_count=verifier.iterations, salt=verifier.salt
        )
    except ScramException:
        return False  # a text that no password can be
    return hmac.compare_digest(stored, verifier.stored_key)


def _too_long(password: str) -> bool:
    return len(password.encode(errors="surrogatepass")) > PASSWORD_BYTES_MAX


async def find_user(reader: DescriptorReader, name: str) -> User | None:
    key = _users.encode_key((name,))
    body = await reader.get(key)
    if body is None:
        return _BUILT_IN.get(name)
    return _user(key, body)


async def list_users(reader: DescriptorReader) -> list[User]:
    """All users, by name."""
    rows = await reader.scan(USERS.primary_span)
    users = {user.name: user for user in (_user(key, body) for key, body in rows)}
    users = {**_BUILT_IN, **users}
    return [users[name] for name in sorted(users)]


async def create_user(transaction: Transaction, user: User, *, if_not_exists: bool = False) -> bool:
    """Says whether the user is new. Raises SQLError 42710 where one of that name exists."""
    _check_name(user.name)
    if await find_user(transaction, user.name) is not None:
        if if_not_exists:
            return False
        raise SQLError("42710", f'role "{user.name}" already exists')
    await _put(transaction, user)
    return True


async def alter_user(transaction: Transaction, user: User) -> None:
    """Replaces what is known of a user. Raises SQLError 42704."""
    if await find_user(transaction, user.name) is None:
        raise unknown_user(user.name)
    await _put(transaction, user)


async def drop_user(transaction: Transaction, name: str, *, if_exists: bool = False) -> bool:
    """Says whether there was one. Raises SQLError 42704, or 2BP01 for `root` and `admin`."""
    if name in _BUILT_IN:
        raise SQLError("2BP01", f'role "{name}" cannot be dropped')
    if await find_user(transaction, name) is None:
        if if_exists:
            return False
        raise unknown_user(name)
    await transaction.delete([_users.encode_key((name,))])
    return True


def unknown_user(name: str) -> SQLError:
    return SQLError("42704", f'role "{name}" does not exist')


async def require_role(reader: DescriptorReader, name: str) -> None:
    """Raises SQLError 42704 for what is neither a role nor `public`."""
    if name != PUBLIC and await find_user(reader, name) is None:
        raise unknown_user(name)


def ended_login(key: bytes, body: bytes | None) -> str | None:
    """The name of the user that may not log in any more with this change of a row of `users`."""
    if body is None:
        return str(_users.decode_key(key)[0])
    user = _user(key, body)
    return None if user.login else user.name


def _check_name(name: str) -> None:
    if name in _RESERVED:
        raise SQLError("42939", f'role name "{name}" is reserved')
    if not name or len(name.encode()) > NAME_BYTES_MAX:
        raise SQLError("42602", f"a role's name has 1 to {NAME_BYTES_MAX} bytes")


async def _put(transaction: Transaction, user: User) -> None:
    written = None if user.verifier is None else str(user.verifier)
    key, body = _users.encode_row((user.name, written, user.login))
    await transaction.put([key], [body])


def _user(key: bytes, body: bytes) -> User:
    name, verifier, login = _users.decode_row(key, body)
    parsed = None if verifier is None else Verifier.parse(str(verifier))
    return User(str(name), parsed, login is not False)
