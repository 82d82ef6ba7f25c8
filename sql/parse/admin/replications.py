"""The grammar of replications: changefeeds of a keyspace into a replica of it, with a name.

CREATE REPLICATION r FOR KEYSPACE ks INTO 'tailrace://host/ks' WITH (concurrency = 8)
is CREATE CHANGEFEED FOR KEYSPACE ks INTO 'tailrace://host/ks?concurrency=8' WITH mvcc_timestamp
"""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import urlencode

from ....catalog.values.errors import SQLError
from ....changefeed import WORKERS_MAX
from ....changefeed.sinks.tailrace import SPARK_SCHEME
from ...syntax.keyspace_statements import RebalanceReplication, ShowReplications
from ...syntax.names import Option
from ...syntax.statements import ControlJobs, CreateChangefeed, JobAction, VerifyChangefeed
from ..cursor import Cursor
from ..ddl.keyspaces import keyspace_feed
from .feeds import with_options

_NAME = "a replication's name"

SENDING = ("backoff_max", "backoff_min", "batch_size", "concurrency", "rate_limit")
"""Options of how entries are sent: parameters of the sink."""

ENGINES = ("local", "spark")
"""What sends the entries: jobs of the nodes, or tasks of a Spark application."""

KNOWN = (*SENDING, "backup", "bootstrap", "engine", "master", "start_ts", "workers")


def create_replication(cursor: Cursor) -> CreateChangefeed:
    """`name FOR KEYSPACE keyspace [FROM key] [TO key] INTO 'uri' [WITH (option = value, …)]`"""
    name = cursor.identifier(_NAME)
    cursor.expect_words("for", "keyspace")
    keyspace = keyspace_feed(cursor)
    cursor.expect_words("into")
    sink = cursor.string("the URI of a replica")
    given = with_options(cursor)
    _check_backup(given, whole=not keyspace.start and keyspace.end is None)
    options, workers, by_spark = _feed_options(given), _workers(given), _by_spark(given)
    return CreateChangefeed(
        tables=(keyspace.name,),
        sink=_with_parameters(_spark_sink(sink) if by_spark else sink, given, by_spark=by_spark),
        options=options,
        keyspace=keyspace,
        replication=name,
        workers=None if by_spark else workers,
    )


def control_replication(cursor: Cursor, action: JobAction) -> ControlJobs:
    name = cursor.identifier(_NAME)
    return ControlJobs(action=action, job_ids=(), replication=name)


def verify_replication(cursor: Cursor) -> VerifyChangefeed:
    """`name [AT RESOLVED]`"""
    name = cursor.identifier(_NAME)
    at_resolved = cursor.accept_words("at", "resolved")
    return VerifyChangefeed(job_id=0, at_resolved=at_resolved, repairs=False, replication=name)


def show_tasks(cursor: Cursor) -> ShowReplications:
    """`name TASKS`"""
    name = cursor.identifier(_NAME)
    cursor.expect_words("tasks")
    return ShowReplications(tasks_of=name)


def rebalance_replication(cursor: Cursor) -> RebalanceReplication:
    name = cursor.identifier(_NAME)
    return RebalanceReplication(name)


def _workers(given: tuple[Option, ...]) -> int | None:
    """Raises SQLError 22023."""
    option = next((option for option in given if option.name == "workers"), None)
    if option is None:
        return None
    text = option.value or ""
    if not text.isdecimal() or not 1 <= int(text) <= WORKERS_MAX:
        raise SQLError(
            "22023",
            f"workers is a whole number from 1 to {WORKERS_MAX}",
            position=option.position,
        )
    return int(text)


def _by_spark(given: tuple[Option, ...]) -> bool:
    """Whether Spark sends the entries. Raises SQLError 22023."""
    values = {option.name: option for option in given}
    engine, master = values.get("engine"), values.get("master")
    if engine is not None and engine.value not in ENGINES:
        raise SQLError(
            "22023",
            f'engine "{engine.value}" is not known',
            hint="'local' has the nodes send the entries, and 'spark' a Spark application.",
            position=engine.position,
        )
    by_spark = engine is not None and engine.value == "spark"
    if master is not None and not by_spark:
        raise SQLError(
            "22023",
            "a master is named for engine = 'spark' alone",
            position=master.position,
        )
    return by_spark


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


def _check_backup(given: tuple[Option, ...], *, whole: bool) -> None:
    """Raises SQLError 22023 where a bootstrap by backup is not all there, or cannot be."""
    values = {option.name: option for option in given}
    bootstrap, folder = values.get("bootstrap"), values.get("backup")
    asked = bootstrap is not None and bootstrap.value == "backup"
    if asked is not (folder is not None):
        raise SQLError(
            "22023",
            "bootstrap = 'backup' and backup = 'file:///folder' go together",
            hint="The folder is one that both stores reach.",
        )
    if asked and (not whole or "start_ts" in values):
        raise SQLError(
            "22023", "a backup is of a whole keyspace as of now: leave out FROM, TO and start_ts"
        )


def _with_parameters(sink: str, given: tuple[Option, ...], *, by_spark: bool) -> str:
    names = (*SENDING, "backup", *(("master", "workers") if by_spark else ()))
    sending = {option.name: option.value or "" for option in given if option.name in names}
    if not sending:
        return sink
    return f"{sink}{'&' if '?' in sink else '?'}{urlencode(sending)}"


def _feed_options(given: tuple[Option, ...]) -> tuple[Option, ...]:
    found = [Option("mvcc_timestamp", None, 1)]
    for option in given:
        if option.name not in KNOWN:
            raise SQLError(
                "22023",
                f'unknown option "{option.name}" of a replication',
                hint=f"There are {', '.join(sorted(KNOWN))}.",
                position=option.position,
            )
        if option.name == "start_ts":
            found.append(replace(option, name="cursor"))
        elif option.name == "bootstrap":
            scans = {"scan": "initial_scan", "backup": "initial_scan", "none": "no_initial_scan"}
            if option.value not in scans:
                raise SQLError(
                    "22023",
                    f'bootstrap "{option.value}" is not known',
                    hint="'scan' sends the keys that are there first, 'backup' has them restored "
                    "there from a folder, and 'none' sends only what is written from here on.",
                    position=option.position,
                )
            found.append(Option(scans[option.value], None, option.position))
    return tuple(found)
