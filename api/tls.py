"""TLS as a server speaks it, at every door."""

from __future__ import annotations

import ssl
from datetime import datetime
from pathlib import Path

from cryptography import x509

from .refusal import NodeRefused


def server_context(cert: Path, key: Path) -> ssl.SSLContext:
    """TLS 1.2 and later, with that certificate. Raises NodeRefused where it cannot be used."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(cert, key)
    except (OSError, ssl.SSLError) as error:
        raise NodeRefused(
            f"cannot use the certificate {cert} with the key {key}: {error}"
        ) from error
    return context


def invalid_now(cert: Path, now: datetime) -> str | None:
    """Says that a certificate is not valid `now`, in a sentence, where it is not: who verifies it
    refuses the server."""
    try:
        found = x509.load_pem_x509_certificate(cert.read_bytes())
    except ValueError:
        return None  # the doors, which loaded it, read more than this does
    if found.not_valid_before_utc <= now <= found.not_valid_after_utc:
        return None
    says = (
        f"has expired at {found.not_valid_after_utc:%Y-%m-%d %H:%M:%S} UTC"
        if now > found.not_valid_after_utc
        else f"is not valid before {found.not_valid_before_utc:%Y-%m-%d %H:%M:%S} UTC"
    )
    return f"the certificate {cert} {says}: clients and nodes that verify it refuse this server"
