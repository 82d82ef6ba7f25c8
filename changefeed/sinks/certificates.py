"""Certificates that URIs of sinks bring, in PEM: whom to trust, and who the client is."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from tempfile import NamedTemporaryFile

CERTIFICATE_PARAMETERS = ("ca_cert", "client_cert", "client_key")


def check_certificates(certificates: Mapping[str, bytes]) -> None:
    """Checks `CERTIFICATE_PARAMETERS`, of which a client's certificate and key go together. Raises
    ValueError, which names the one that will not do."""
    _load(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), certificates)


def tls_context(certificates: Mapping[str, bytes]) -> ssl.SSLContext:
    """Returns the context of certificates that were checked. Without `ca_cert` the system's
    authorities are read, in some 20 ms of CPU time: not for a step of the loop."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    _load(context, certificates)
    if "ca_cert" not in certificates:
        context.load_default_certs()
    return context


def _load(context: ssl.SSLContext, certificates: Mapping[str, bytes]) -> None:
    if "ca_cert" in certificates:
        try:
            context.load_verify_locations(cadata=certificates["ca_cert"].decode())
        except (ssl.SSLError, ValueError):
            raise ValueError("ca_cert is no certificate in PEM") from None
    if "client_cert" in certificates:
        _load_client(context, certificates)


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
