"""URIs of sinks that are servers: read strictly, and shown without their secrets.

    postgres://app:p%40ss@db.example:5432/mirror?schema=eu

    shown      postgres://app:redacted@db.example:5432/mirror?schema=eu

The password is a secret wherever it stands, and so is each parameter that a kind of sink declares
secret. A text that cannot be read as a URI may hold a secret anywhere, so of that only the scheme
is shown.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Mapping
from dataclasses import dataclass
from ipaddress import IPv6Address
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from ...catalog.values.errors import SQLError
from ...catalog.values.shown_text import shown_text

REDACTED = "redacted"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerURI:
    """The parts of a URI, percent-decoded. `host` has no brackets; `path` begins with a slash, or
    is empty."""

    scheme: str
    user: str | None
    password: str | None
    host: str
    port: int | None
    path: str
    parameters: Mapping[str, str]

    @property
    def address(self) -> str:
        """Host and port, as messages name the server."""
        host = bracketed(self.host)
        return host if self.port is None else f"{host}:{self.port}"


def bracketed(host: str) -> str:
    """The host as it stands before a port: an IPv6 address in brackets."""
    return f"[{host}]" if ":" in host else host


class AllBut:
    """Every name but these."""

    def __init__(self, names: Collection[str]) -> None:
        self._names = frozenset(names)

    def __contains__(self, name: object) -> bool:
        return name not in self._names


def parse_server_uri(
    text: str, *, known: Collection[str] | None, secret: Container[str]
) -> ServerURI:
    """Reads `text`. Raises SQLError 22023, whose words hold no secret.

    `known` are the parameters that the kind of sink takes, None where it takes any, and `secret`
    those of them that are secret.
    """
    uri = _read(text)
    if uri is None:
        raise bad_uri(
            text,
            "it cannot be read",
            hint="Write scheme://user:password@host:port/path?name=value; in user and password "
            "percent-encode what is not a letter or a digit (@ is %40).",
        )
    if not uri.host:
        raise SQLError("22023", f"bad sink URI {uri.scheme}://…: a host is missing")
    for name in uri.parameters:
        if known is not None and name not in known:
            raise bad_uri(
                f"{uri.scheme}://{uri.address}",
                f"unknown parameter {name!r}",
                hint=f"Known parameters: {', '.join(sorted(known))}.",
            )
    return uri


def bad_uri(
    text: str, why: str, *, secret: Container[str] = (), hint: str | None = None
) -> SQLError:
    """The error of a URI that will not do, which names the URI without its secrets."""
    return SQLError("22023", f"bad sink URI {redacted_uri(text, secret)}: {why}", hint=hint)


def redacted_uri(text: str, secret: Container[str] = ()) -> str:
    """The URI as anybody may see it."""
    uri = _read(text)
    if uri is None:
        scheme, separator, _ = text.partition("://")
        return f"{scheme}://…" if separator and scheme.isidentifier() else "…"
    user = "" if uri.user is None else quote(uri.user, safe="")
    if uri.password is not None:
        user += f":{REDACTED}"
    parameters = {
        name: REDACTED if name in secret else value for name, value in uri.parameters.items()
    }
    query = f"?{urlencode(parameters)}" if parameters else ""
    at = "@" if user else ""
    return f"{uri.scheme}://{user}{at}{uri.address}{quote(uri.path)}{query}"


def shown_place(text: str) -> str:
    """The URI of a place on this node, as errors show it: it takes no secret, and is shown without
    what somebody gave it all the same: a password, or parameters."""
    return shown_text(text.partition("?")[0])


def secrets_of(text: str, secret: Container[str] = ()) -> frozenset[str]:
    """The secrets that the URI holds, decoded."""
    uri = _read(text)
    if uri is None:
        return frozenset()
    found = {value for name, value in uri.parameters.items() if name in secret}
    if uri.password is not None:
        found.add(uri.password)
    return frozenset(found - {""})


def _read(text: str) -> ServerURI | None:
    """The parts of a URI; None for other texts, and for URIs that parsers read differently."""
    if any(ord(character) < 0x21 or ord(character) == 0x7F for character in text):
        return None  # urlsplit drops some of these without a word
    try:
        parts = urlsplit(text)
        port = parts.port
        pairs = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
        host = unquote(parts.hostname or "", errors="strict")
        if ":" in host:
            IPv6Address(host)
        else:
            host.encode("idna")  # as a lookup does: a label is neither empty nor over 63 bytes
        user, password = (
            None if part is None else unquote(part, errors="strict")
            for part in (parts.username, parts.password)
        )
        path = unquote(parts.path, errors="strict")
    except ValueError:
        return None
    # An '@' behind the host, or a fragment, is the rest of a password that was not encoded.
    if parts.fragment or "#" in text or "@" in parts.path or "@" in parts.query:
        return None
    parameters = dict(pairs)
    if not parts.scheme or len(parameters) != len(pairs) or "\x00" in unquote(text):
        return None
    return ServerURI(
        scheme=parts.scheme.lower(),
        user=user,
        password=password,
        host=host,
        port=port,
        path=path,
        parameters=parameters,
    )
