"""Sealing: secrets of sinks as they are stored.

A URI that holds a secret is encrypted whole (AES-256-GCM) by the key of the store's secrets, which
is a file and never in the store: a copy of the store, or a reader of its system tables, has
nothing of them.

    format 1 | id of the key (8) | nonce (12) | ciphertext and tag

The id is the beginning of the key's hash, so that a node with another key says so.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from ..sinks.protocol import SinkError

KEY_BYTES = 32
_FORMAT = b"\x01"
_ID_BYTES, _NONCE_BYTES = 8, 12
_HEAD_BYTES = len(_FORMAT) + _ID_BYTES


class Sealer:
    """Seals and opens secrets with one key. `entropy` draws nonces."""

    def __init__(self, key: bytes, entropy: Callable[[int], bytes]) -> None:
        assert len(key) == KEY_BYTES, len(key)
        self._cipher = AESGCM(key)
        self._head = _FORMAT + sha256(key).digest()[:_ID_BYTES]
        self._entropy = entropy

    def seal(self, secret: str) -> bytes:
        nonce = self._entropy(_NONCE_BYTES)
        return self._head + nonce + self._cipher.encrypt(nonce, secret.encode(), self._head)

    def opens(self, sealed: bytes) -> bool:
        """Whether it was this key that sealed it."""
        return sealed[:_HEAD_BYTES] == self._head

    def open(self, sealed: bytes) -> str:
        """Raises SinkError where another key has sealed it: another node may have that one."""
        if not self.opens(sealed):
            raise SinkError(
                f"the sink's secrets were sealed with key {_name(sealed[1:_HEAD_BYTES])}, and this "
                f"node has key {_name(self._head[1:])}: start it with --secret-key-file"
            )
        nonce, rest = sealed[_HEAD_BYTES:][:_NONCE_BYTES], sealed[_HEAD_BYTES + _NONCE_BYTES :]
        try:
            return self._cipher.decrypt(nonce, rest, self._head).decode()
        except InvalidTag:
            raise SinkError("the sink's sealed secrets are damaged") from None


def _name(key_id: bytes) -> str:
    return key_id.hex()
