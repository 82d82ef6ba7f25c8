"""URIs of object stores: a folder of a bucket, and the account that writes there.

    s3://bucket/orders?AWS_ACCESS_KEY_ID=app&AWS_SECRET_ACCESS_KEY=secret&AWS_REGION=eu-west-1
    s3://bucket/orders?AUTH=implicit
    gs://bucket/orders?BEARER_TOKEN=secret
    azure://container/orders?AZURE_ACCOUNT_NAME=app&AZURE_ACCOUNT_KEY=secret

Parameters are CockroachDB's. With `AUTH=specified`, the default, the URI holds the credentials;
`AUTH=implicit` takes those of the node's own environment.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

from pyarrow import fs

from ....catalog.values.errors import SQLError
from ..files.layout import LAYOUT_PARAMETERS, FilesLayout, read_layout
from ..uri import ServerURI, bad_uri, parse_server_uri, redacted_uri, secrets_of

SECRETS = frozenset(
    {
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
        "AZURE_ACCOUNT_KEY",
        "AZURE_CLIENT_SECRET",
        "BEARER_TOKEN",
        "CREDENTIALS",
    }
)
"""Also those that CockroachDB takes and Tailrace does not."""

CONNECT_SECONDS = 5.0
REQUEST_SECONDS = 20.0
"""A store that sends nothing for so long is asked again, and then given up."""
ATTEMPTS = 3
"""How often a request is sent before the feed waits and begins again."""

DEFAULT_REGION = "us-east-1"
"""Where a URI names an endpoint and no region: servers other than Amazon's mostly have this one."""

_NEVER = datetime(9999, 1, 1)
"""When a token ends is not told by it: a store that finds it ended says so."""
_GCS_RETRIES = timedelta(seconds=60)
_ENDPOINT = re.compile(r"https?://[^/?#@\s]+/?", re.IGNORECASE)
_LABEL = re.compile(r"[a-z0-9-]+", re.IGNORECASE)
_LABELS = frozenset({"AWS_REGION", "AZURE_ACCOUNT_NAME"})
"""Parameters that become a part of the name of the cloud's own host."""
_BUCKET = re.compile(r"[a-z0-9][a-z0-9._-]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """One kind of object store: its parameters, and the client that they configure."""

    parameters: frozenset[str]
    specified: tuple[str, ...]
    """The parameters that together are credentials."""
    implicit: bool = True
    """Whether the node's own credentials can be taken."""
    always: tuple[str, ...] = ()
    """The parameters that each URI has."""
    shows_unfinished: bool = False
    """Whether an object is seen empty before it is whole."""
    client: Callable[[str, Mapping[str, str]], fs.FileSystem]
    """Made from the bucket and the parameters of its URI. It may ask the store."""


def _s3(bucket: str, given: Mapping[str, str]) -> fs.FileSystem:
    endpoint = given.get("AWS_ENDPOINT")
    options: dict[str, Any] = {"allow_delayed_open": True}  # one request for a small object
    if endpoint is not None:
        parts = urlsplit(endpoint)
        options |= {"endpoint_override": parts.netloc, "scheme": parts.scheme}
    region = given.get("AWS_REGION")
    if region is None:
        region = DEFAULT_REGION if endpoint is not None else fs.resolve_s3_region(bucket)
    return fs.S3FileSystem(
        access_key=given.get("AWS_ACCESS_KEY_ID"),
        secret_key=given.get("AWS_SECRET_ACCESS_KEY"),
        session_token=given.get("AWS_SESSION_TOKEN"),
        region=region,
        connect_timeout=CONNECT_SECONDS,
        request_timeout=REQUEST_SECONDS,
        retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=ATTEMPTS),
        background_writes=False,
        **options,
    )


def _gcs(bucket: str, given: Mapping[str, str]) -> fs.FileSystem:
    token = given.get("BEARER_TOKEN")
    options: dict[str, Any] = {}
    if token is not None:
        options = {"access_token": token, "credential_token_expiration": _NEVER}
    return fs.GcsFileSystem(retry_time_limit=_GCS_RETRIES, **options)


def _azure(bucket: str, given: Mapping[str, str]) -> fs.FileSystem:
    options: dict[str, Any] = {"account_key": given["AZURE_ACCOUNT_KEY"]}
    endpoint = given.get("AZURE_ENDPOINT")
    if endpoint is not None:
        parts = urlsplit(endpoint)
        for service in ("blob", "dfs"):
            options[f"{service}_storage_authority"] = parts.netloc
            options[f"{service}_storage_scheme"] = parts.scheme
    return fs.AzureFileSystem(given["AZURE_ACCOUNT_NAME"], **options)


# Arrow's client makes an empty blob when a stream is opened, and fills it when that is closed.
# The key of an account alone: for other credentials the client of Arrow asks Azure for a token, and
# where Azure grants none it ends the process, by an exception that nobody catches in C++.
_AZURE = Store(
    parameters=frozenset({"AZURE_ACCOUNT_KEY", "AZURE_ACCOUNT_NAME", "AZURE_ENDPOINT"}),
    always=("AZURE_ACCOUNT_NAME",),
    specified=("AZURE_ACCOUNT_KEY",),
    implicit=False,
    shows_unfinished=True,
    client=_azure,
)
STORES = {
    "s3": Store(
        parameters=frozenset(
            {
                "AWS_ACCESS_KEY_ID",
                "AWS_ENDPOINT",
                "AWS_REGION",
                "AWS_SECRET_ACCESS_KEY",
                "AWS_SESSION_TOKEN",
            }
        ),
        specified=("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"),
        client=_s3,
    ),
    "gs": Store(parameters=frozenset({"BEARER_TOKEN"}), specified=("BEARER_TOKEN",), client=_gcs),
    "azure": _AZURE,
    "azure-blob": _AZURE,
}
SCHEMES = tuple(STORES)


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectsLocation:
    """A folder of a bucket. `path` begins with the bucket; `shown` names it without secrets."""

    path: str
    shown: str
    layout: FilesLayout
    implicit: bool
    """Whether the node's own credentials are asked for."""
    store: Store = field(repr=False)
    given: Mapping[str, str] = field(repr=False)
    secrets: frozenset[str] = field(repr=False)

    @property
    def bucket(self) -> str:
        return self.path.partition("/")[0]

    @property
    def target(self) -> str:
        """The same for any two URIs that name one folder of one store."""
        where = {"AWS_ENDPOINT", "AZURE_ENDPOINT", "AZURE_ACCOUNT_NAME"} & self.given.keys()
        return " ".join([self.shown, *(self.given[name] for name in sorted(where))])

    @property
    def endpoints(self) -> list[str]:
        """Hosts that the URI names."""
        named = (self.given.get(name) for name in ("AWS_ENDPOINT", "AZURE_ENDPOINT"))
        return [urlsplit(url).hostname or "" for url in named if url is not None]

    def connect(self) -> fs.FileSystem:
        """A client. It may ask the store, and raises OSError."""
        return self.store.client(self.bucket, self.given)


def parse_location(text: str) -> ObjectsLocation:
    """Reads a sink URI. Raises SQLError 22023, whose words hold no secret."""
    store = STORES[text.partition("://")[0].lower()]
    known = store.parameters | {"AUTH", *LAYOUT_PARAMETERS}
    uri = parse_server_uri(text, known=known, secret=SECRETS)

    def bad(why: str) -> SQLError:
        return bad_uri(text, why, secret=SECRETS)

    if uri.user is not None or uri.port is not None or not _BUCKET.fullmatch(uri.host):
        raise bad("the host is the name of a bucket, in lower case, and parameters hold the rest")
    folders = uri.path.strip("/")
    if not folders or any(part in ("", ".", "..") for part in folders.split("/")):
        raise bad("the path is that of a folder in the bucket")
    return ObjectsLocation(
        path=f"{uri.host}/{folders}",
        shown=f"{'azure' if uri.scheme == 'azure-blob' else uri.scheme}://{uri.host}/{folders}",
        layout=read_layout(uri.parameters, bad),
        implicit=_implicit(uri, store, bad),
        store=store,
        given={name: uri.parameters[name] for name in store.parameters & uri.parameters.keys()},
        secrets=secrets_of(text, SECRETS),
    )


def _implicit(uri: ServerURI, store: Store, bad: Callable[[str], SQLError]) -> bool:
    """Whether the node's own credentials are to be used, after a look at what is given."""
    given = uri.parameters
    auth = given.get("AUTH", "specified").lower()
    if auth not in ("specified", "implicit"):
        raise bad("AUTH is one of specified, implicit")
    for name in store.parameters & given.keys():
        if not given[name]:
            raise bad(f"parameter {name} has no value")
        if " " in given[name]:
            raise bad(f"parameter {name} holds a blank: write a + as %2B")
        if name.endswith("_ENDPOINT") and not _ENDPOINT.fullmatch(given[name]):
            raise bad(f"{name} is http://host:port or https://host:port")
        if name in _LABELS and not _LABEL.fullmatch(given[name]):
            raise bad(f"{name} is of letters, digits and hyphens")
    for name in store.always:
        if name not in given:
            raise bad(f"parameter {name} is missing")
    if not _base64(given.get("AZURE_ACCOUNT_KEY", "")):
        raise bad("AZURE_ACCOUNT_KEY is no key of an account, which is base64")
    credentials = " and ".join(store.specified)
    held = given.keys() & set(store.specified)
    if auth == "implicit":
        if not store.implicit:
            raise bad(f"credentials are {credentials}, and not those of the node")
        if held:
            raise bad(f"AUTH=implicit excludes {', '.join(sorted(held))}")
        return True
    if len(held) < len(store.specified):
        other = "; AUTH=implicit takes those of the node" if store.implicit else ""
        raise bad(f"credentials are {credentials}{other}")
    return False


def _base64(text: str) -> bool:
    """Arrow's client of Azure ends the process at a key that is not."""
    try:
        b64decode(text, validate=True)
    except ValueError:
        return False
    return True


def redacted_location(text: str) -> str:
    """The URI as anybody may see it."""
    return redacted_uri(text, SECRETS)
