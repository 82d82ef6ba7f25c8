"""Certificates that URIs of sinks bring, in PEM: whom to trust, and who the client is."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from tempfile import NamedTemporaryFile

CERTIFICATE_PARAMETERS = ("ca_cert", "client_cert", "client_key")


def tls_context(certificates: Mapping[str, bytes]) -> ssl.SSLContext:
    """The context of `CERTIFICATE_PARAMETERS`, of which a client's certificate and key go together.
    Raises ValueError, which names the one that will not do."""
    authorities = certificates.get("ca_cert")
    try:
        context = ssl.create_default_context(
            cadata=None if authorities is None else authorities.decode()
        )
    except (ssl.SSLError, UnicodeDecodeError, ValueError):
        raise ValueError("ca_cert is no certificate in PEM") from None
    if "client_cert" in certificates:
        _load_client(context, certificates)
    return context


def _load_client(context: ssl.SSLContext, certificates: Mapping[str, bytes]) -> None:
    """The client's certificate and key, by way of a file that only we can read: ssl takes no
    other."""
    with NamedTemporaryFile(prefix="tailrace-") as file:
        file.write(certificates["client_cert"] + b"\n" + certificates["client_key"])
        file.flush()
        try:
            # Without a password OpenSSL would ask the terminal for that of an encrypted key.
            context.load_cert_chain(file.name, password="")
        except (ssl.SSLError, ValueError):
            raise ValueError("client_cert and client_key are no pair of PEM") from None
