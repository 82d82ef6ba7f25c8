"""How the Postgres door lets clients in."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path

from ..http.host_check import is_loopback
from ..refusal import NodeRefused
from .authentication import Method


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresOptions:
    """With TRUST, only loopback addresses are served."""

    method: Method = Method.SCRAM
    tls: ssl.SSLContext | None = None


def postgres_options(
    host: str, method: Method, *, insecure: bool, cert: Path | None, key: Path | None
) -> PostgresOptions:
    """The options of a server on `host`. Raises NodeRefused for what would let anybody in."""
    if method is Method.TRUST and not insecure:
        raise NodeRefused("trust lets everybody in without a password: say --insecure as well")
    if insecure and not is_loopback(host):
        raise NodeRefused(
            f"will not listen on {host} with --insecure: without passwords only a loopback "
            "address is served (127.0.0.1, ::1, localhost)"
        )
    if (cert is None) != (key is None):
        raise NodeRefused("TLS needs both --cert and --key")
    if method is Method.PASSWORD and cert is None and not insecure:
        raise NodeRefused("passwords in the clear are taken over TLS only: give --cert and --key")
    tls = None if cert is None or key is None else _context(cert, key)
    return PostgresOptions(method=Method.TRUST if insecure else method, tls=tls)


def _context(cert: Path, key: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(cert, key)
    except (OSError, ssl.SSLError) as error:
        raise NodeRefused(
            f"cannot use the certificate {cert} with the key {key}: {error}"
        ) from error
    return context
