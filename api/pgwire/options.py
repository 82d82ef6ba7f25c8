"""The options of the Postgres door."""

from __future__ import annotations

import hashlib
import ssl
from dataclasses import dataclass
from pathlib import Path

from asn1crypto import pem
from asn1crypto.x509 import Certificate

from ..admission import Bounds
from ..descriptors import POSTGRES_BOUNDS
from ..http.host_check import is_loopback
from ..refusal import NodeRefused
from ..tls import server_context
from .authentication import Method


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresOptions:
    """With TRUST, only loopback addresses are served. With `tls_only`, nobody is let in in the
    clear. `binding` is the certificate's hash, to which clients may bind their proof."""

    method: Method = Method.SCRAM
    tls: ssl.SSLContext | None = None
    tls_only: bool = False
    binding: bytes | None = None
    bounds: Bounds = POSTGRES_BOUNDS


def postgres_options(
    host: str,
    method: Method,
    *,
    insecure: bool,
    cert: Path | None,
    key: Path | None,
    plaintext: bool = False,
) -> PostgresOptions:
    """The options of a server on `host`. Raises NodeRefused for what would let anybody in, or
    would send rows in the clear; `plaintext` says that they may be, beyond loopback too."""
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
    if cert is None and not plaintext and not is_loopback(host):
        raise NodeRefused(
            f"will not speak the Postgres protocol on {host} in the clear: give --cert and --key, "
            "or say --pg-plaintext where the network is trusted"
        )
    return PostgresOptions(
        method=Method.TRUST if insecure else method,
        tls=None if cert is None or key is None else server_context(cert, key),
        tls_only=not is_loopback(host) and not plaintext,
        binding=None if cert is None else _binding(cert),
    )


def _binding(cert: Path) -> bytes | None:
    """The hash that RFC 5929 names for the certificate; None where its signature names none."""
    _, _, der = pem.unarmor(cert.read_bytes())
    try:
        algorithm = Certificate.load(der).hash_algo
    except ValueError:  # Ed25519, for one, has no hash of its own
        return None
    return hashlib.new("sha256" if algorithm in ("md5", "sha1") else algorithm, der).digest()
