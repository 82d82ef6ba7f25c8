"""Raw keyspaces, and replications: changefeeds of a keyspace into a replica of it, with a name.

CREATE REPLICATION r FOR KEYSPACE ks INTO 'tailrace://host/ks' WITH (concurrency = 8)
is CREATE CHANGEFEED FOR KEYSPACE ks INTO 'tailrace://host/ks?concurrency=8' WITH mvcc_timestamp
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import NoReturn
from urllib.parse import urlencode

from ....catalog.values.errors import SQLError
from ....changefeed import WORKERS_MAX
from ....changefeed.sinks.tailrace import SPARK_SCHEME
from ...syntax.keyspace_statements import KeyspaceFeed
from ...syntax.statement import AsOf, Option, rows_of
from ...syntax.statements import CreateChangefeed
from ..cursor import Cursor
from ..kinds import at_string, define_rules, kind, string
from ..rules import Row, Rules

Options = tuple[Option, ...]


@kind("first_key", at_string, absent=b"")
@kind("key", at_string)
def _key(cursor: Cursor) -> bytes:
    """A text is its bytes in UTF-8, and one that begins with `\\x` what follows in hex."""
    position, text = cursor.position, string(cursor, "a key")
    if not text.startswith("\\x"):
        return text.encode()
    try:
        return bytes.fromhex(text[2:])
    except ValueError:
        raise SQLError(
            "22P02", f'"{text}" is no key: what follows \\x must be hex', position=position
        ) from None


@kind("timestamp", at_string)
def _as_of(cursor: Cursor) -> AsOf:
    position = cursor.position
    return AsOf(string(cursor, "a timestamp"), None, position)


define_rules("keyspace_feed", Rules(*rows_of(KeyspaceFeed)))


def _part_of(position: int, **_: object) -> NoReturn:
    raise SQLError(
        "0A000",
        "some keys of a keyspace cannot be transferred without the others",
        detail="A keyspace has one leader, and one epoch: its feeds, its replicas and whoever "
        "reads it go by what that one leader has resolved.",
        hint="TRANSFER TO 'tailrace://…' hands all of its keys over. Keys that are to be led "
        "elsewhere belong in a keyspace of their own.",
        position=position,
    )


def _replication(
    replication: str, keyspace: KeyspaceFeed, sink: str, options: Options
) -> CreateChangefeed:
    given = {option.name: option for option in options}
    _check(given, whole=not keyspace.start and keyspace.end is None)
    by_spark = "engine" in given and given["engine"].value == "spark"
    if by_spark:
        sink = _spark_sink(sink)
    sent = (*SENDING, "backup", *(("master", "workers") if by_spark else ()))
    sending = {name: option.value or "" for name, option in given.items() if name in sent}
    if sending:
        sink = f"{sink}{'&' if '?' in sink else '?'}{urlencode(sending)}"
    workers = given.get("workers")
    return CreateChangefeed(
        tables=(keyspace.name,),
        sink=sink,
        options=_feed_options(given),
        keyspace=keyspace,
        replication=replication,
        workers=None if by_spark or workers is None else int(workers.value or ""),
    )


SENDING = ("backoff_max", "backoff_min", "batch_size", "concurrency", "rate_limit")
"""Options of how entries are sent: parameters of the sink."""
ENGINES = ("local", "spark")
"""What sends the entries: jobs of the nodes, or tasks of a Spark application."""
KNOWN = (*SENDING, "backup", "bootstrap", "engine", "master", "start_ts", "workers")
_SCANS = {"scan": "initial_scan", "backup": "initial_scan", "none": "no_initial_scan"}
_CHOICES: dict[str, tuple[Collection[str | None], str]] = {
    "bootstrap": (
        (*_SCANS,),
        "'scan' sends the keys that are there first, 'backup' has them restored there from a "
        "folder, and 'none' sends only what is written from here on.",
    ),
    "engine": (ENGINES, "'local' has the nodes send the entries, and 'spark' a Spark application."),
}


def _check(given: dict[str, Option], *, whole: bool) -> None:
    """Raises SQLError 22023 for options that are not known, or do not go together."""
    values = {name: option.value for name, option in given.items()}

    def refuse(name: str, message: str, hint: str | None = None) -> NoReturn:
        raise SQLError("22023", message, hint=hint, position=given[name].position)

    for name in given:
        if name not in KNOWN:
            hint = f"There are {', '.join(sorted(KNOWN))}."
            refuse(name, f'unknown option "{name}" of a replication', hint)
    by_backup = values.get("bootstrap") == "backup"
    if by_backup is not ("backup" in given):
        raise SQLError(
            "22023",
            "bootstrap = 'backup' and backup = 'file:///folder' go together",
            hint="The folder is one that both stores reach.",
        )
    if by_backup and (not whole or "start_ts" in given):
        raise SQLError(
            "22023", "a backup is of a whole keyspace as of now: leave out FROM, TO and start_ts"
        )
    for name, (known, hint) in _CHOICES.items():
        if name in given and values[name] not in known:
            refuse(name, f'{name} "{values[name]}" is not known', hint)
    if "workers" in given:
        text = values["workers"] or ""
        if not text.isdecimal() or not 1 <= int(text) <= WORKERS_MAX:
            refuse("workers", f"workers is a whole number from 1 to {WORKERS_MAX}")
    if "master" in given and values.get("engine") != "spark":
        refuse("master", "a master is named for engine = 'spark' alone")


def _spark_sink(sink: str) -> str:
    """Raises SQLError 0A000 for a target that is not named by its own URI."""
    scheme, _, rest = sink.partition("://")
    if scheme.lower() != "tailrace":
        raise SQLError(
            "0A000",
            "engine = 'spark' sends into a keyspace that is named by its URI",
            hint="Write INTO 'tailrace://user:password@host:port/keyspace'.",
        )
    return f"{SPARK_SCHEME}://{rest}"


def _feed_options(given: dict[str, Option]) -> Options:
    found = [Option("mvcc_timestamp", None, 1)]
    for name, option in given.items():
        if name == "start_ts":
            found.append(replace(option, name="cursor"))
        elif name == "bootstrap":
            found.append(Option(_SCANS[option.value or ""], None, option.position))
    return tuple(found)


KEYSPACES: tuple[Row, ...] = (
    ("ALTER KEYSPACE _:keyspace TRANSFER ^ [FROM _:key] TO _:key [TO _:replica]", _part_of),
    (
        "CREATE REPLICATION replication:replication FOR KEYSPACE keyspace:keyspace_feed "
        "INTO sink:replica [options:with]",
        _replication,
    ),
)
