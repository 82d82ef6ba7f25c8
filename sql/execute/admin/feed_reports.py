"""SHOW CHANGEFEED LATENCY and LAG; SHOW, RETRY and SKIP DEAD LETTERS."""

from __future__ import annotations

from collections.abc import Sequence

from ....catalog.descriptors.descriptor import TableDescriptor
from ....catalog.rights.privileges import Privilege
from ....catalog.rows.key_borders import pretty_key
from ....catalog.values.errors import SQLError
from ....changefeed import DeadLetter
from ....kvlayer.clock import format_timestamp
from ....kvlayer.span import Span
from ...results.results import Result, Row, listing
from ...runtime.authorization import Actor
from ...runtime.services import Services
from ...syntax import changefeed_statements as s
from ..query.result_shape import RETRY_COLUMNS
from .jobs import check_feed, tables_now


async def show_feed_latency(actor: Actor, statement: s.ShowFeedLatency) -> Result:
    """A row for each stage. Raises SQLError 42704, 42501, and 0A000 where another node runs it."""
    services = actor.services
    await check_feed(services, actor.user, statement.job_id, controls=False)
    stages = await services.jobs.latency(statement.job_id)
    held = [stage.holdup.table_id for stage in stages if stage.holdup is not None]
    tables = await tables_now(services, held)
    rows: list[Row] = []
    for stage in stages:
        measured, holdup = stage.measured, stage.holdup
        times = [None] * 4 if measured is None else [
            measured.p50, measured.p95, measured.p99, measured.max
        ]  # fmt: skip
        waiting: Row = (None,) * 5
        if holdup is not None:
            table = tables.get(holdup.table_id)
            waiting = (
                holdup.batches, stage.waited_ms, None if table is None else table.name,
                _shown(holdup.span, table), holdup.why,
            )  # fmt: skip
        rows.append((stage.name, 0 if measured is None else measured.count, *times, *waiting))
    columns = (
        "stage commits:i p50_ms:f p95_ms:f p99_ms:f max_ms:f waiting:i waited_ms:f table_name span "
        "waits_for"
    )
    return listing("SHOW CHANGEFEED LATENCY", columns, rows)


async def show_feed_lag(actor: Actor, statement: s.ShowFeedLag) -> Result:
    """A row for each span of each table. Raises SQLError 42704 and 42501."""
    services = actor.services
    await check_feed(services, actor.user, statement.job_id, controls=False)
    spans = await services.jobs.lag(statement.job_id)
    tables = await tables_now(services, [found.table_id for found in spans])
    rows: list[Row] = [
        (
            found.table_name, found.state, _shown(found.span, tables.get(found.table_id)),
            format_timestamp(found.resolved) if found.resolved else None, found.seconds,
            found.catch_up_seconds,
        )
        for found in spans
    ]  # fmt: skip
    columns = "table_name state span resolved lag_seconds:f catch_up_seconds:f"
    return listing("SHOW CHANGEFEED LAG", columns, rows)


def _shown(span: Span, table: TableDescriptor | None) -> str:
    return f"[{pretty_key(span.start, table)}, {pretty_key(span.end, table)})"


_READERS = (Privilege.SELECT, Privilege.CHANGEFEED)

_LETTER = "table_name key mvcc_timestamp error message message_bytes:i refused:t"


async def tell_dead_letters(actor: Actor, statement: s.LetterStatement) -> Result:
    """Raises SQLError as SHOW CHANGEFEED LAG and VERIFY CHANGEFEED do, and for RETRY where the feed
    takes no rows now."""
    services, user, chosen = actor.services, actor.user, statement.chosen
    shows = isinstance(statement, s.ShowDeadLetters)
    await check_feed(services, user, chosen.job_id, controls=not shows)
    letters = _chosen(await services.jobs.dead_letters(chosen.job_id), chosen)
    await _check_tables(services, user, letters)
    rows: list[Row]
    match statement:
        case s.ShowDeadLetters():
            rows = [
                (
                    letter.table_name, letter.key, format_timestamp(letter.at), letter.error,
                    letter.message, letter.message_bytes, letter.refused,
                )
                for letter in letters
            ]  # fmt: skip
            return listing("SHOW DEAD LETTERS", _LETTER, rows)
        case s.SkipDeadLetters():
            await services.jobs.skip_dead_letters(letters)
            return Result(tag=f"SKIP DEAD LETTERS {len(letters)}", row_count=len(letters))
        case _:
            outcomes = await services.jobs.retry_dead_letters(chosen.job_id, letters)
            rows = [
                (letter.table_name, letter.key, format_timestamp(letter.at), outcome)
                for letter, outcome in zip(letters, outcomes, strict=True)
            ]
            return listing(f"RETRY DEAD LETTERS {len(rows)}", RETRY_COLUMNS, rows)


async def _check_tables(services: Services, user: str, letters: Sequence[DeadLetter]) -> None:
    """Raises SQLError 42501 where the user may not read the tables of the letters as they are now,
    the owner of the feed too: letters hold rows, and outlive the feed, its right to a table, and
    the table, which is then for admins."""
    rights = services.rights.current
    if rights.admin(user):
        return
    names = {letter.table_id: letter.table_name for letter in letters}
    tables = await tables_now(services, names)
    for table_id, name in names.items():
        table = tables.get(table_id)
        if (
            table is None
            or table.dropped
            or not any(rights.allow(user, table, each) for each in _READERS)
        ):
            raise SQLError(
                "42501",
                f"user {user} has neither SELECT nor CHANGEFEED privilege on relation {name}",
                detail="Dead letters hold its rows.",
                hint="TABLE chooses the letters of another table.",
            )


def _chosen(letters: Sequence[DeadLetter], chosen: s.LetterChoice) -> list[DeadLetter]:
    """A table may be named by the end of its full name."""
    named = None if chosen.table is None else list(chosen.table.parts)
    return [
        letter
        for letter in letters
        if (named is None or letter.table_name.split(".")[-len(named) :] == named)
        and chosen.key in (None, letter.key)
    ]
