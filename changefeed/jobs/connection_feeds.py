"""Changes of external connections, and of the feeds that use them, in one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import msgspec

from ...catalog.descriptors.system_tables import JOBS
from ...catalog.jobs.job_store import JobStore
from ...catalog.jobs.record import JobRecord
from ...catalog.values.errors import SQLError
from ...kvlayer.access import Transaction
from ..connections import (
    ExternalConnection,
    connection_name,
    find_connection,
    put_connection,
    remove_connection,
)
from ..sinks.worker import WorkerKind
from .description import describe
from .details import ChangefeedDetails, UnknownFormat, decode_details, encode_details
from .places import claim_place
from .reach import check_reach
from .reservations import JOB_KIND, check_free
from .services import ChangefeedServices
from .sink_uris import FeedSink, in_mirror_schema, sealed_sink, usable_connection


async def create_connection(
    services: ChangefeedServices, transaction: Transaction, name: str, uri: str, user: str
) -> None:
    """Raises SQLError: 42710 where there is one of that name, and whatever the URI is wrong in."""
    with transaction.tracking(True):
        if await find_connection(transaction, name) is not None:
            raise SQLError("42710", f'external connection "{name}" already exists')
    if not name or "/" in name or "?" in name:
        raise SQLError("42602", f'"{name}" is no name for an external connection')
    sink = await _checked(services, transaction, uri, user)
    await put_connection(transaction, _connection(name, user, sink))


async def alter_connection(
    services: ChangefeedServices, transaction: Transaction, name: str, uri: str, user: str
) -> None:
    """Gives a connection another URI, and with it every feed that uses it: those that run begin
    another attempt. Raises SQLError."""
    known = await usable_connection(services, transaction, name, user)
    sink = await _checked(services, transaction, uri, user)
    feeds = await _feeds_of(services, transaction, name)
    kind = services.kinds.kind_of(sink.uri)
    jobs = JobStore(services.store)
    for job, details in feeds:
        if services.kinds.kind_of(details.sink_uri) is not kind or isinstance(kind, WorkerKind):
            raise SQLError(
                "55000",
                f'external connection "{name}" is used by changefeed job {job.id}, whose sink can '
                "be no other",
                hint=f"CANCEL JOB {job.id}, or create another connection.",
            )
        schema = details.taken_options.mirror_schema
        place = sink if schema is None else in_mirror_schema(sink, schema)
        moved = msgspec.structs.replace(details, sink_uri=place.shown, sealed_uri=place.sealed)
        await check_free(services, transaction, moved, job_id=job.id)
        await jobs.put_payload(transaction, job, encode_details(moved), describe(moved))
    await put_connection(transaction, _connection(name, known.owner, sink))


async def give_connection(
    services: ChangefeedServices, transaction: Transaction, name: str, owner: str, user: str
) -> None:
    """Makes a role the owner of a connection. Raises SQLError."""
    known = await usable_connection(services, transaction, name, user)
    await put_connection(transaction, replace(known, owner=owner))


async def drop_connection(
    services: ChangefeedServices, transaction: Transaction, name: str, user: str
) -> None:
    """Raises SQLError 2BP01 where a feed uses it."""
    await usable_connection(services, transaction, name, user)
    feeds = await _feeds_of(services, transaction, name)
    if feeds:
        ids = ", ".join(str(job.id) for job, _ in feeds)
        raise SQLError(
            "2BP01",
            f'cannot drop external connection "{name}" because changefeeds use it',
            detail=f"Jobs {ids}.",
            hint="Cancel them first.",
        )
    await remove_connection(transaction, name)


async def _checked(
    services: ChangefeedServices, transaction: Transaction, uri: str, user: str
) -> FeedSink:
    """The sink of a URI that is a connection's. Raises SQLError."""
    if connection_name(uri) is not None:
        raise SQLError("22023", "an external connection does not stand for another one")
    sink = sealed_sink(services, uri)
    services.kinds.kind_of(uri).reserved(uri, [])
    await claim_place(services, transaction, uri, user)
    await check_reach(services, uri, user)
    return sink


def _connection(name: str, owner: str, sink: FeedSink) -> ExternalConnection:
    return ExternalConnection(name=name, owner=owner, uri=sink.shown, sealed=sink.sealed or None)


async def _feeds_of(
    services: ChangefeedServices, transaction: Transaction, name: str
) -> Sequence[tuple[JobRecord, ChangefeedDetails]]:
    """The feeds that use a connection and may still run."""
    found: list[tuple[JobRecord, ChangefeedDetails]] = []
    with transaction.tracking(True):  # a feed that is being created has read the connection
        rows = await transaction.scan(JOBS.primary_span)
    for key, body in rows:
        job = JobRecord.decode(key, body)
        if job.kind != JOB_KIND or job.state.final:
            continue
        try:
            details = decode_details(job.payload)
        except UnknownFormat:
            continue  # a newer version of this program knows of connections itself
        if details.connection == name:
            found.append((job, details))
    return found
