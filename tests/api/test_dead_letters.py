"""Rows that a receiver will never take, through SQL: dead letters, RETRY and SKIP.

The commands are those of docs/sinks.md.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tailrace.catalog.values.errors import SQLError
from tailrace.sql import Session
from tests.api.test_webhook_sink import Orders, orders, until
from tests.harness.documented import documented_sql
from tests.harness.webhook_receiver import WebhookReceiver

AT_ONCE = """webhook_sink_config = '{"Retry": {"Max": 1, "Backoff": "5ms"}}'"""
LETTERS = f"{AT_ONCE}, on_bad_row = 'dead_letter'"


async def letters_of(bench: Orders, job_id: int) -> list[tuple[object, ...]]:
    shown = await bench.sql(f"SHOW DEAD LETTERS FOR CHANGEFEED {job_id}")
    names = [column.name for column in shown.columns]
    wanted = [names.index(name) for name in ("table_name", "key", "error", "message")]
    return [tuple(row[place] for place in wanted) for row in shown.fetchall()]


async def outcomes(bench: Orders, job_id: int) -> list[str]:
    told = await bench.sql(f"RETRY DEAD LETTERS FOR CHANGEFEED {job_id}")
    return [str(row[3]) for row in told.fetchall()]


async def state_of(bench: Orders, job_id: int) -> str:
    jobs = await bench.sql(f"SHOW CHANGEFEED JOB {job_id}")
    return str(dict(zip([c.name for c in jobs.columns], jobs.fetchall()[0], strict=True))["status"])


async def becomes(bench: Orders, job_id: int, state: str) -> None:
    async with asyncio.timeout(20):
        while await state_of(bench, job_id) != state:
            await asyncio.sleep(0.02)


def names(receiver: WebhookReceiver) -> list[str]:
    rows = [each for each in receiver.messages if "after" in each]
    return [each["after"]["name"] if each["after"] else "gone" for each in rows]


def test_a_refused_row_is_a_dead_letter_until_it_is_sent(tmp_path: Path) -> None:
    async def scenario(receiver: WebhookReceiver) -> None:
        async with orders(tmp_path) as bench:
            await bench.sql("INSERT INTO orders SELECT g, 'x' || g FROM generate_series(3, 40) g")
            await bench.sql("UPDATE orders SET name = 'bad' WHERE k IN (7, 31)")
            receiver.refused = {"bad"}
            job_id = await bench.feed(f"webhook-http://{receiver.address}", LETTERS)
            await bench.caught_up(job_id)
            assert len(set(names(receiver))) == 38
            address = receiver.address
            error = f"webhook at {address}: 422 Unprocessable Entity: as told"
            assert await letters_of(bench, job_id) == [
                (
                    "defaultdb.public.orders",
                    f"[{key}]",
                    error,
                    f'{{"after":{{"k":{key},"name":"bad"}},"key":[{key}],"topic":"orders"}}',
                )
                for key in (7, 31)
            ]
            assert await outcomes(bench, job_id) == [f"refused again: {error}"] * 2
            await bench.sql("UPDATE orders SET name = 'new' WHERE k = 7")
            await bench.caught_up(job_id)
            assert names(receiver)[-1] == "new"
            receiver.refused = set()
            first, second = await outcomes(bench, job_id)
            assert (first.partition(":")[0], second) == ("superseded", "sent")
            assert names(receiver)[-2:] == ["new", "bad"]
            assert [key for _, key, *_ in await letters_of(bench, job_id)] == ["[7]"]
            skipped = await bench.sql(
                f"SKIP DEAD LETTERS FOR CHANGEFEED {job_id} TABLE orders KEY '[7]'"
            )
            assert skipped.row_count == 1
            assert await letters_of(bench, job_id) == []

    with WebhookReceiver() as receiver:
        asyncio.run(scenario(receiver))


def test_the_documents_commands_run(tmp_path: Path) -> None:
    """But for the id of the feed."""
    [commands] = documented_sql("Dead letters")

    async def scenario(receiver: WebhookReceiver) -> None:
        async with orders(tmp_path) as bench:
            await bench.sql("INSERT INTO orders VALUES (7, 'bad'), (8, 'bad')")
            receiver.refused = {"bad"}
            job_id = await bench.feed(f"webhook-http://{receiver.address}", LETTERS)
            await bench.caught_up(job_id)
            text = commands.replace("1186843215265628160", str(job_id))
            show, retry, skip = [each for each in text.split(";\n") if each]
            assert (await bench.sql(show)).row_count == 2
            receiver.refused = set()
            assert [row[3] for row in (await bench.sql(retry)).fetchall()] == ["sent"]
            assert (await bench.sql(skip)).row_count == 1
            assert await letters_of(bench, job_id) == []

    with WebhookReceiver() as receiver:
        asyncio.run(scenario(receiver))


def test_a_refused_deletion_is_sent_again(tmp_path: Path) -> None:
    async def scenario(receiver: WebhookReceiver) -> None:
        async with orders(tmp_path) as bench:
            job_id = await bench.feed(f"webhook-http://{receiver.address}", LETTERS)
            await bench.caught_up(job_id)
            receiver.status = 400
            await bench.sql("DELETE FROM orders WHERE k = 1")
            await bench.caught_up(job_id)
            receiver.status = 200
            assert await outcomes(bench, job_id) == ["sent"]
            assert names(receiver)[-1] == "gone"
            await bench.sql("PAUSE JOB " + str(job_id))
            await becomes(bench, job_id, "paused")
            assert await outcomes(bench, job_id) == []

    with WebhookReceiver() as receiver:
        asyncio.run(scenario(receiver))


def test_a_refused_row_pauses_the_feed_or_ends_it(tmp_path: Path) -> None:
    async def scenario(receiver: WebhookReceiver) -> None:
        receiver.refused = {"b"}
        async with orders(tmp_path) as bench:
            uri = f"webhook-http://{receiver.address}"
            pausing = await bench.feed(uri, f"{AT_ONCE}, on_bad_row = 'pause'")
            failing = await bench.feed(uri, f"{AT_ONCE}, on_bad_row = 'fail', on_error = 'pause'")
            await becomes(bench, pausing, "paused")
            await becomes(bench, failing, "failed")
            for job_id in (pausing, failing):
                shown = await bench.shown(job_id)
                assert "refused was the row [2] of defaultdb.public.orders at " in shown
                assert await letters_of(bench, job_id) == []
            receiver.refused = set()
            await bench.sql(f"RESUME JOB {pausing}")
            await until(lambda: "b" in names(receiver))

    with WebhookReceiver() as receiver:
        asyncio.run(scenario(receiver))


def test_a_receiver_that_refuses_everything_pauses_the_feed(tmp_path: Path) -> None:
    async def scenario(receiver: WebhookReceiver) -> None:
        receiver.status = 400
        async with orders(tmp_path) as bench:
            await bench.sql("SET CLUSTER SETTING changefeed.dead_letters.max = 3")
            await bench.sql("INSERT INTO orders SELECT g, 'x' FROM generate_series(3, 9) g")
            job_id = await bench.feed(f"webhook-http://{receiver.address}", LETTERS)
            await becomes(bench, job_id, "paused")
            assert "has 3 dead letters, as many as changefeed.dead_letters.max" in (
                await bench.shown(job_id)
            )
            receiver.status = 200
            with pytest.raises(SQLError, match="takes no rows again"):
                await outcomes(bench, job_id)
            await bench.sql(f"RESUME JOB {job_id}")
            await bench.caught_up(job_id)
            assert await outcomes(bench, job_id) == ["sent"] * 3

    with WebhookReceiver() as receiver:
        asyncio.run(scenario(receiver))


def test_what_speaks_of_the_receiver_is_no_bad_row(tmp_path: Path) -> None:
    async def scenario(receiver: WebhookReceiver) -> None:
        receiver.status = 403
        async with orders(tmp_path) as bench:
            job_id = await bench.feed(f"webhook-http://{receiver.address}", LETTERS)
            async with asyncio.timeout(20):
                while f"{receiver.address}: 403" not in await bench.shown(job_id):
                    await asyncio.sleep(0.02)
            assert await letters_of(bench, job_id) == []
            with pytest.raises(SQLError, match="has no effect on a null changefeed"):
                await bench.feed("null://", "on_bad_row = 'pause'")
            with pytest.raises(SQLError, match="one of fail, pause, dead_letter, not 'x'"):
                await bench.feed(f"webhook-http://{receiver.address}", "on_bad_row = 'x'")

    with WebhookReceiver() as receiver:
        asyncio.run(scenario(receiver))


def test_letters_are_for_who_may_read_their_tables_now(tmp_path: Path) -> None:
    """The owner, too, when the right was revoked, and when the table left the feed or is gone."""

    async def scenario(receiver: WebhookReceiver) -> None:
        receiver.refused = {"b"}
        async with orders(tmp_path) as bench:
            await bench.sql(
                "CREATE USER ada; CREATE USER vic; GRANT SYSTEM VIEWJOB, CONTROLJOB TO vic;"
                "CREATE TABLE other (k INT PRIMARY KEY); GRANT SELECT ON other TO vic;"
                "GRANT CHANGEFEED ON orders, other TO ada"
            )
            ada, vic = (bench.database.node.session(user=name) for name in ("ada", "vic"))
            into = f"INTO 'webhook-http://{receiver.address}'"
            made = await ada.execute(f"CREATE CHANGEFEED FOR orders, other {into} WITH {LETTERS}")
            ((job_id,),) = made[-1].fetch_rows()
            assert isinstance(job_id, int)
            await bench.caught_up(job_id)
            show = f"SHOW DEAD LETTERS FOR CHANGEFEED {job_id}"
            assert len((await ada.execute(show))[-1].fetch_rows()) == 1
            await bench.sql(f"PAUSE JOB {job_id}")
            await becomes(bench, job_id, "paused")
            await bench.sql(f"ALTER CHANGEFEED {job_id} DROP orders")
            await refused(vic, show)
            await refused(vic, show.replace("SHOW", "SKIP", 1))
            assert (await vic.execute(f"{show} TABLE other"))[-1].fetch_rows() == []
            await bench.sql("REVOKE CHANGEFEED ON orders FROM ada")
            await refused(ada, show)
            await bench.sql("GRANT SELECT ON orders TO ada, vic")
            for session in (ada, vic):
                assert len((await session.execute(show))[-1].fetch_rows()) == 1
            await bench.sql("DROP TABLE orders")
            for session in (ada, vic):
                await refused(session, show)
                await session.close()
            assert len(await letters_of(bench, job_id)) == 1

    with WebhookReceiver() as receiver:
        asyncio.run(scenario(receiver))


async def refused(session: Session, text: str) -> None:
    with pytest.raises(SQLError) as caught:
        await session.execute(text)
    assert caught.value.sqlstate == "42501", caught.value
