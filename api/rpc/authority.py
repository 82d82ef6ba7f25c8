"""Authority: by whose signature a node knows the process that serves its store."""

from __future__ import annotations

import asyncio
import ssl
from dataclasses import dataclass
from pathlib import Path

LOOK_SECONDS_MAX = 2.0


class AuthorityError(Exception):
    """The authority's file cannot be used; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Authority:
    """Certificates, of which one has signed the server's, or is the server's."""

    path: Path
    pem: bytes

    @classmethod
    def read(cls, path: Path) -> Authority:
        """Raises AuthorityError."""
        try:
            found = cls(path, path.read_bytes())
            found.context()
        except OSError as error:  # an SSLError is one
            raise AuthorityError(
                f"cannot use the authority {path}: {error}: give the certificate (PEM) that signed "
                "the server's --cert, or that certificate itself"
            ) from error
        return found

    def context(self) -> ssl.SSLContext:
        return ssl.create_default_context(cadata=self.pem.decode("latin-1"))


async def why_unreachable(host: str, port: int, authority: Authority | None) -> str | None:
    """The part of TLS in a failure to reach a server, in a sentence; None: none.

    gRPC does not tell a closed port from a refused certificate in words that help. No token is
    sent.
    """
    if authority is None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    else:
        context = authority.context()
    try:
        async with asyncio.timeout(LOOK_SECONDS_MAX):
            _, writer = await asyncio.open_connection(host, port, ssl=context, server_hostname=host)
    except ssl.SSLCertVerificationError as error:
        assert authority is not None, error
        return (
            f"its certificate does not show, by {authority.path}, that it is {host} "
            f"({error.verify_message}): give the authority that signed its --cert, which has to "
            "name the address and to be valid today"
        )
    except (ssl.SSLError, ConnectionResetError):
        return None if authority is None else "it does not speak TLS: start it with --cert, --key"
    except (OSError, TimeoutError):
        return None
    writer.transport.abort()
    if authority is None:
        return "it speaks TLS: give the authority of its certificate (--join-ca, --oracle-ca)"
    return None
