"""Certificates that URIs of sinks bring, in PEM: whom to trust, and who the client is."""

from __future__ import annotations

import ssl
from base64 import b64decode
from collections.abc import Mapping
from tempfile import NamedTemporaryFile

CERTIFICATE_PARAMETERS = ("ca_cert", "client_cert", "client_key")


def certificates_of(parameters: Mapping[str, str]) -> dict[str, str]:
    """Returns the PEM of `CERTIFICATE_PARAMETERS`, which come in base64. Raises ValueError, which
    names the one that will not do."""
    if ("client_cert" in parameters) != ("client_key" in parameters):
        raise ValueError("client_cert and client_key go together")
    found = {
        name: _decoded(name, parameters[name])
        for name in CERTIFICATE_PARAMETERS
        if name in parameters
    }
    _load(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), found)
    return found


def _decoded(name: str, value: str) -> str:
    try:
        return b64decode(value.replace(" ", "+"), validate=True).decode()  # a '+' not encoded
    except ValueError:
        raise ValueError(f"{name} is not PEM in base64") from None


def tls_context(certificates: Mapping[str, str]) -> ssl.SSLContext:
    """Returns the context of certificates that were checked. Without `ca_cert` the system's
    authorities are read, in some 20 ms of CPU time: not for a step of the loop."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    _load(context, certificates)
    if "ca_cert" not in certificates:
        context.load_default_certs()
    return context


def _load(context: ssl.SSLContext, certificates: Mapping[str, str]) -> None:
    if "ca_cert" in certificates:
        try:
            context.load_verify_locations(cadata=certificates["ca_cert"])
        except (ssl.SSLError, ValueError):
            raise ValueError("ca_cert is no certificate in PEM") from None
    if "client_cert" in certificates:
        _load_client(context, certificates)


def _load_client(context: ssl.SSLContext, certificates: Mapping[str, str]) -> None:
    """The client's certificate and key, by way of a file that only we can read: ssl takes no
    other."""
    with NamedTemporaryFile(prefix="tailrace-") as file:
        file.write(f"{certificates['client_cert']}\n{certificates['client_key']}".encode())
        file.flush()
        try:
            # Without a password OpenSSL would ask the terminal for that of an encrypted key.
            context.load_cert_chain(file.name, password="")
        except (ssl.SSLError, ValueError):
            raise ValueError("client_cert and client_key are no pair of PEM") from None
