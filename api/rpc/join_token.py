"""The join token: what a node must know to be answered by the process that serves a store.

It is a file of the data folder that only the owner can read, made with the folder's first RPC port.
A joining node is given the file's path; the token itself is never an argument, never printed and
never logged.
"""

from __future__ import annotations

import os
import secrets
from hmac import compare_digest
from pathlib import Path

TOKEN_FILE = "join.token"
TOKEN_BYTES = 32


class JoinTokenError(Exception):
    """The token's file cannot be used; the message says why and what to do."""


class JoinToken:
    """A secret that shows itself to nobody."""

    __slots__ = ("_secret",)

    def __init__(self, secret: str) -> None:
        self._secret = secret

    @classmethod
    def of_folder(cls, folder: Path) -> JoinToken:
        """The token of a data folder; a new one where there is none yet."""
        path = folder / TOKEN_FILE
        if path.exists():
            return cls.read(path)
        secret = secrets.token_hex(TOKEN_BYTES)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(secret + "\n")
        return cls(secret)

    @classmethod
    def read(cls, path: Path) -> JoinToken:
        """Raises JoinTokenError where others may read the file, or it is not there."""
        try:
            mode = path.stat().st_mode
            secret = path.read_text().strip()
        except OSError as error:
            raise JoinTokenError(f"cannot read join token {path}: {error.strerror}") from error
        if mode & 0o077:
            raise JoinTokenError(
                f"join token {path} can be read by others: make it yours alone (chmod 600)"
            )
        if not secret:
            raise JoinTokenError(f"join token {path} is empty: copy the one of the store's folder")
        return cls(secret)

    def matches(self, given: str) -> bool:
        """In time that says nothing of the secret."""
        return compare_digest(self._secret.encode(), given.encode())

    def reveal(self) -> str:
        """For the wire, and for nothing else."""
        return self._secret

    def __repr__(self) -> str:
        return "<JoinToken>"
