"""URIs of Kafka: brokers, topics, and how brokers and feed know each other.

    kafka://b1:9092,b2:9092?topic_prefix=eu_&tls_enabled=true&sasl_enabled=true&sasl_user=…
    confluent-cloud://pkc.example:9092?api_key=…&api_secret=…
    azure-event-hub://ns.servicebus.windows.net:9093?shared_access_key_name=…&shared_access_key=…

The latter two are Kafka with a fixed way of logging in.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urlsplit

from ..certificates import certificates_of
from ..uri import AllBut, bad_uri, parse_server_uri, redacted_uri

KAFKA, CONFLUENT_CLOUD, EVENT_HUB = SCHEMES = ("kafka", "confluent-cloud", "azure-event-hub")
DEFAULT_PORTS = {KAFKA: 9092, CONFLUENT_CLOUD: 9092, EVENT_HUB: 9093}
CERTIFICATES = {
    "ca_cert": "ssl.ca.pem",
    "client_cert": "ssl.certificate.pem",
    "client_key": "ssl.key.pem",
}
TOKEN_URL = "sasl.oauthbearer.token.endpoint.url"
OAUTH = {
    "sasl_client_id": "sasl.oauthbearer.client.id",
    "sasl_client_secret": "sasl.oauthbearer.client.secret",
    "sasl_scopes": "sasl.oauthbearer.scope",
    "sasl_token_url": TOKEN_URL,
}
FLAGS = frozenset({"insecure_tls_skip_verify", "sasl_enabled", "tls_enabled"})
TOPIC_PARAMETERS = frozenset({"topic_name", "topic_prefix"})
PARAMETERS: Mapping[str, frozenset[str]] = {
    KAFKA: FLAGS
    | TOPIC_PARAMETERS
    | {*CERTIFICATES, *OAUTH, "sasl_mechanism", "sasl_password", "sasl_user"},
    CONFLUENT_CLOUD: TOPIC_PARAMETERS | {"api_key", "api_secret"},
    EVENT_HUB: TOPIC_PARAMETERS | {"shared_access_key", "shared_access_key_name"},
}
SHOWN = (
    FLAGS
    | TOPIC_PARAMETERS
    | {
        "api_key",
        "sasl_client_id",
        "sasl_mechanism",
        "sasl_scopes",
        "sasl_token_url",
        "sasl_user",
        "shared_access_key_name",
    }
)
SECRET_PARAMETERS = AllBut(SHOWN)
PASSWORD_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
OAUTH_MECHANISM = "OAUTHBEARER"

_AUTHORITY = re.compile(r"([A-Za-z-]+://)([^/?#]*)(.*)", re.DOTALL)
_BROKERS = re.compile(r"[A-Za-z0-9.:,\[\]_-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaTarget:
    """`client` is librdkafka's configuration of how to reach the brokers."""

    brokers: tuple[str, ...]
    topic_prefix: str
    client: Mapping[str, str] = field(repr=False)

    @property
    def hosts(self) -> tuple[str, ...]:
        """The brokers that are named, and the server that gives tokens. Brokers name others."""
        urls = [f"//{broker}" for broker in self.brokers]
        if TOKEN_URL in self.client:
            urls.append(self.client[TOKEN_URL])
        return tuple(urlsplit(url).hostname or "" for url in urls)

    @property
    def shown(self) -> str:
        """The cluster, as messages name it."""
        return f"Kafka at {', '.join(self.brokers)}"


def parse_target(text: str) -> KafkaTarget:
    """The target of a sink URI. Raises SQLError 22023."""
    head, brokers, tail = _split(text)
    scheme = head.partition("://")[0].lower()
    if not _BROKERS.fullmatch(brokers):
        raise bad_uri("kafka://", "brokers are host:port, with commas between them", hint=_HINT)
    first, *others = brokers.split(",")
    known = PARAMETERS[scheme]
    uri = parse_server_uri(f"{head}{first}{tail}", known=known, secret=SECRET_PARAMETERS)
    parsed = [uri, *(parse_server_uri(f"{head}{each}", known=(), secret=()) for each in others)]
    if uri.path not in ("", "/"):
        raise bad_uri(text, "a Kafka URI has no path: topic_name names one topic")
    parameters = dict(uri.parameters)
    if parameters.get("topic_name") == "":
        raise bad_uri(shown_uri(text), "topic_name has no value")
    port = DEFAULT_PORTS[scheme]
    return KafkaTarget(
        brokers=tuple(each.address if each.port else f"{each.address}:{port}" for each in parsed),
        topic_prefix=parameters.get("topic_prefix", ""),
        client=_client(text, scheme, uri.host, parameters),
    )


def topic_parameters(text: str) -> dict[str, str]:
    """The parameters of a URI, with its secrets or without, that say what topics are called."""
    given = parse_qsl(urlsplit(text).query, keep_blank_values=True)
    return {name: value for name, value in given if name in TOPIC_PARAMETERS}


_HINT = "Credentials are parameters: sasl_user, sasl_password."


def shown_uri(text: str) -> str:
    """The URI as anybody may see it."""
    head, brokers, tail = _split(text)
    if not _BROKERS.fullmatch(brokers):
        return f"{head}…"
    shown = redacted_uri(f"{head}broker{tail}", SECRET_PARAMETERS)
    return shown.replace("://broker", f"://{brokers}", 1)


def _split(text: str) -> tuple[str, str, str]:
    """The scheme with its '://', the brokers, and the rest."""
    found = _AUTHORITY.fullmatch(text)
    assert found is not None, "the scheme has chosen this kind"
    return found[1], found[2], found[3]


def _client(text: str, scheme: str, host: str, given: Mapping[str, str]) -> dict[str, str]:
    if scheme == CONFLUENT_CLOUD:
        _need(text, given, "api_key", "api_secret")
        return _login(given["api_key"], given["api_secret"])
    if scheme == EVENT_HUB:
        _need(text, given, "shared_access_key", "shared_access_key_name")
        return _login(
            "$ConnectionString",
            f"Endpoint=sb://{host}/;SharedAccessKeyName={given['shared_access_key_name']};"
            f"SharedAccessKey={given['shared_access_key']}",
        )
    flags = {name: _flag(text, name, given.get(name, "false")) for name in FLAGS}
    tls, sasl = flags["tls_enabled"], flags["sasl_enabled"]
    _refuse_without(text, tls, "tls_enabled", given, [*CERTIFICATES, "insecure_tls_skip_verify"])
    logins = [name for name in given if name.startswith("sasl_") and name != "sasl_enabled"]
    _refuse_without(text, sasl, "sasl_enabled", given, logins)
    client = {"security.protocol": ("sasl_" if sasl else "") + ("ssl" if tls else "plaintext")}
    for name, pem in _certificates(text, given).items():
        client[CERTIFICATES[name]] = pem
    if flags["insecure_tls_skip_verify"]:
        client["enable.ssl.certificate.verification"] = "false"
    return client | (_sasl(text, given) if sasl else {})


def _sasl(text: str, given: Mapping[str, str]) -> dict[str, str]:
    mechanism = given.get("sasl_mechanism", "PLAIN").upper()
    if mechanism == OAUTH_MECHANISM:
        _need(text, given, "sasl_client_id", "sasl_client_secret", "sasl_token_url")
        login = {option: given[name] for name, option in OAUTH.items() if name in given}
        return {"sasl.mechanism": mechanism, "sasl.oauthbearer.method": "oidc"} | login
    if mechanism not in PASSWORD_MECHANISMS:
        known = ", ".join((*PASSWORD_MECHANISMS, OAUTH_MECHANISM))
        raise bad_uri(shown_uri(text), f"sasl_mechanism is one of {known}")
    _need(text, given, "sasl_user", "sasl_password")
    return {
        "sasl.mechanism": mechanism,
        "sasl.username": given["sasl_user"],
        "sasl.password": given["sasl_password"],
    }


def _login(user: str, password: str) -> dict[str, str]:
    return {
        "security.protocol": "sasl_ssl",
        "sasl.mechanism": "PLAIN",
        "sasl.username": user,
        "sasl.password": password,
    }


def _need(text: str, given: Mapping[str, str], *names: str) -> None:
    for name in names:
        if not given.get(name):
            raise bad_uri(shown_uri(text), f"parameter {name} is missing")


def _refuse_without(
    text: str, on: bool, flag: str, given: Mapping[str, str], names: list[str]
) -> None:
    for name in names:
        if name in given and not on:
            raise bad_uri(shown_uri(text), f"parameter {name} goes with {flag}=true")


def _flag(text: str, name: str, value: str) -> bool:
    if value.lower() not in ("true", "false"):
        raise bad_uri(shown_uri(text), f"{name} is true or false")
    return value.lower() == "true"


def _certificates(text: str, given: Mapping[str, str]) -> dict[str, str]:
    """The certificates in PEM. Raises SQLError 22023 for what is none: librdkafka would say so as
    it says that no broker answers."""
    try:
        return certificates_of(given)
    except ValueError as error:
        raise bad_uri(shown_uri(text), str(error)) from None
