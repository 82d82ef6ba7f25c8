"""`tailrace://` URIs: a keyspace of another store, at that store's HTTP port.

    tailrace://app:secret@recovery.example:8081/sessions?concurrency=8&sslrootcert=/etc/ca.pem
    spark+tailrace://app:secret@recovery.example:8081/sessions?master=local[2]&workers=2

The second has Spark send the entries, by so many tasks at once, on that master.

The connection is encrypted, except to a loopback address without `tls=on`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address

from ..uri import bad_uri, bracketed, parse_server_uri

SCHEME = "tailrace"
SPARK_SCHEME = "spark+tailrace"
DEFAULT_MASTER = "local[2]"
WORKERS_MAX = 32
SPARK_PARAMETERS = ("master", "workers")
DEFAULT_PORT = 8081
PARAMETERS = (
    "backup",
    "backoff_max",
    "backoff_min",
    "batch_size",
    "concurrency",
    "rate_limit",
    "sslrootcert",
    "tls",
)
CONCURRENCY_MAX = 64
CONCURRENCY_DEFAULT = 16
"""So that a backlog is bound by the stores' work, not by a link of 60 ms there and back. What is no
backlog has one request under way."""

SPARK_CONCURRENCY_DEFAULT = 4
"""Of each task of Spark, which deals keys over connections and threads of its own."""

BATCH_DEFAULT = 2_000
SPARK_BATCH_DEFAULT = 500
BATCH_MAX = 5_000
"""Entries of one request: the target decodes them in one step of its loop."""

RATE_MAX = 10_000_000
BACKOFF_MAX = 3_600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaTarget:
    """A keyspace of another store, and how much is sent to it at once.

    `concurrency` requests are under way at one time, of `batch_size` entries each; `rate_limit` is
    in entries a second. What fails is sent again after `backoff_min` seconds, and each time after
    twice as many, up to `backoff_max`. A keyspace that has nothing yet is restored from a `backup`,
    a folder that both stores know by that URI.
    """

    host: str
    port: int
    keyspace: str
    user: str
    password: str = field(repr=False)
    tls: bool
    root_certificate: str | None = None
    concurrency: int = CONCURRENCY_DEFAULT
    batch_size: int = BATCH_DEFAULT
    rate_limit: int | None = None
    backoff_min: float = 0.1
    backoff_max: float = 10.0
    backup: str | None = None
    master: str = DEFAULT_MASTER
    workers: int | None = None

    @property
    def address(self) -> str:
        return f"{bracketed(self.host)}:{self.port}"

    @property
    def shown(self) -> str:
        """The keyspace, as messages name it."""
        return f"keyspace {self.keyspace} of {self.address}"


def parse_target(text: str) -> ReplicaTarget:
    """The target of a sink URI. Raises SQLError 22023."""
    by_spark = text.lower().startswith(f"{SPARK_SCHEME}://")
    known = (*PARAMETERS, *SPARK_PARAMETERS) if by_spark else PARAMETERS
    uri = parse_server_uri(text, known=known, secret=())
    keyspace = uri.path.removeprefix("/")
    if not keyspace or "/" in keyspace:
        raise bad_uri(text, "the path is the name of one keyspace")
    values = uri.parameters
    tls = values.get("tls", "off" if _loopback(uri.host) else "on")
    if tls not in ("on", "off"):
        raise bad_uri(text, "tls is on or off")
    if tls == "off" and not _loopback(uri.host):
        raise bad_uri(
            text,
            "tls=off would send the password in the clear",
            hint="Serve the target with --cert and --key, and name its authority by sslrootcert.",
        )
    target = ReplicaTarget(
        host=uri.host,
        port=uri.port or DEFAULT_PORT,
        keyspace=keyspace,
        user=uri.user or "root",
        password=uri.password or "",
        tls=tls == "on",
        root_certificate=values.get("sslrootcert"),
        concurrency=_whole(
            text,
            values,
            "concurrency",
            SPARK_CONCURRENCY_DEFAULT if by_spark else CONCURRENCY_DEFAULT,
            CONCURRENCY_MAX,
        ),
        batch_size=_whole(
            text,
            values,
            "batch_size",
            SPARK_BATCH_DEFAULT if by_spark else BATCH_DEFAULT,
            BATCH_MAX,
        ),
        rate_limit=_whole(text, values, "rate_limit", 0, RATE_MAX) or None,
        backoff_min=_seconds(text, values, "backoff_min", 0.1),
        backoff_max=_seconds(text, values, "backoff_max", 10.0),
        backup=values.get("backup"),
        master=values.get("master", DEFAULT_MASTER),
        workers=_whole(text, values, "workers", 0, WORKERS_MAX) or None,
    )
    if target.backoff_min > target.backoff_max:
        raise bad_uri(text, "backoff_min is more than backoff_max")
    return target


def _loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _whole(text: str, values: Mapping[str, str], name: str, default: int, most: int) -> int:
    given = values.get(name)
    if given is None:
        return default
    if not given.isdecimal() or not 1 <= int(given) <= most:
        raise bad_uri(text, f"{name} is a whole number from 1 to {most}")
    return int(given)


def _seconds(text: str, values: Mapping[str, str], name: str, default: float) -> float:
    given = values.get(name)
    if given is None:
        return default
    try:
        seconds = float(given)
    except ValueError:
        seconds = -1.0
    if not 0 < seconds <= BACKOFF_MAX:
        raise bad_uri(text, f"{name} is in seconds, above 0 and up to {BACKOFF_MAX:g}")
    return seconds
