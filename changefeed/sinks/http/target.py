"""`webhook-https://` URIs: an endpoint, and how it is trusted.

webhook-https://hooks.example:8443/orders?token=secret&ca_cert=LS0tLS1CRUdJTi…

ca_cert, client_cert, client_key    PEM, in base64
insecure_tls_skip_verify=true       takes any certificate
any other parameter                 is the receiver's, and secret
"""

from __future__ import annotations

import asyncio
import ssl
from base64 import b64encode
from collections.abc import Collection
from dataclasses import dataclass, field
from urllib.parse import quote, urlencode

from ..certificates import CERTIFICATE_PARAMETERS, certificates_of, tls_context
from ..uri import AllBut, bad_uri, bracketed, parse_server_uri, redacted_uri, secrets_of

SECURE_SCHEME, INSECURE_SCHEME = "webhook-https", "webhook-http"
SKIP_VERIFY = "insecure_tls_skip_verify"
OWN_PARAMETERS = frozenset({*CERTIFICATE_PARAMETERS, SKIP_VERIFY})
SECRET_PARAMETERS = AllBut({SKIP_VERIFY})
"""Certificates are none, and are left out all the same: they are long."""

_PATH_CHARACTERS = "/:@!$&'()*+,;=-._~"


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookTarget:
    """`request_target` is the path and query of requests. `authorization` is that of the URI's user
    and password, if it has any, and `secrets` are all secrets of the URI, decoded."""

    secure: bool
    host: str
    port: int
    request_target: str = field(repr=False)
    authorization: str | None = field(repr=False)
    certificates: dict[str, str] = field(repr=False)
    secrets: frozenset[str] = field(repr=False)
    skip_verify: bool
    what: str = "webhook"

    @property
    def authority(self) -> str:
        return f"{bracketed(self.host)}:{self.port}"

    @property
    def shown(self) -> str:
        """The receiver, as messages name it."""
        return f"{self.what} at {self.authority}"

    async def tls(self) -> ssl.SSLContext | None:
        """Returns the TLS context of requests, made in a thread; None for plain HTTP."""
        if not self.secure:
            return None
        context = await asyncio.to_thread(tls_context, self.certificates)
        if self.skip_verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context


def parse_target(
    text: str,
    *,
    what: str = "webhook",
    secure_scheme: str = SECURE_SCHEME,
    known: Collection[str] | None = None,
) -> WebhookTarget:
    """The target of a URI: of a sink, or of `what` else is asked over HTTP, whose own parameters
    are `known`. Raises SQLError 22023."""
    uri = parse_server_uri(text, known=known, secret=SECRET_PARAMETERS)
    secure = uri.scheme == secure_scheme
    skip_verify = uri.parameters.get(SKIP_VERIFY, "false").lower()
    if skip_verify not in ("true", "false"):
        raise bad_uri(text, f"{SKIP_VERIFY} is true or false", secret=SECRET_PARAMETERS)
    theirs = {name: value for name, value in uri.parameters.items() if name not in OWN_PARAMETERS}
    query = f"?{urlencode(theirs)}" if theirs else ""
    if not secure and not OWN_PARAMETERS.isdisjoint(uri.parameters):
        raise bad_uri(text, f"{uri.scheme} has no certificates", secret=SECRET_PARAMETERS)
    try:
        certificates = certificates_of(uri.parameters)
    except ValueError as error:
        raise bad_uri(text, str(error), secret=SECRET_PARAMETERS) from None
    return WebhookTarget(
        secure=secure,
        host=uri.host,
        port=uri.port or (443 if secure else 80),
        request_target=quote(uri.path or "/", safe=_PATH_CHARACTERS) + query,
        authorization=None if uri.user is None else _basic(uri.user, uri.password or ""),
        certificates=certificates,
        secrets=secrets_of(text, SECRET_PARAMETERS),
        skip_verify=skip_verify == "true",
        what=what,
    )


def shown_uri(text: str) -> str:
    """The URI as anybody may see it."""
    return redacted_uri(text, SECRET_PARAMETERS)


def _basic(user: str, password: str) -> str:
    return "Basic " + b64encode(f"{user}:{password}".encode()).decode()
