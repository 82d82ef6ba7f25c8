"""TLS as a server speaks it, at every door."""

from __future__ import annotations

import ssl
from pathlib import Path

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
