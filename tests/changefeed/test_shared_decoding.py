"""Feeds of one table decode its rows once, and each has the stage times of its own."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tailrace.api.embedded import aopen
from tailrace.catalog.rows.row_codec import codec_for
from tailrace.changefeed.contract.changes import Form, StageTimes
from tailrace.changefeed.pipeline import shared_decoding
from tailrace.changefeed.pipeline.shared_decoding import KEPT_MAX, SharedDecoding
from tailrace.changefeed.targets import Versions
from tailrace.kvlayer.clock import Timestamp
from tailrace.kvlayer.events import ValueBatch
from tests.harness.descriptors import table


def batch_of(key: int) -> ValueBatch:
    written, body = codec_for(table()).encode_row((key, "v"))
    return ValueBatch(keys=[written], values=[body], timestamps=[Timestamp(100)])


def versions_of(batch: ValueBatch) -> Versions:
    return Versions(list(batch.keys), list(batch.values), list(batch.timestamps))


def entered(lanes: int) -> SharedDecoding:
    decoding = SharedDecoding()
    for _ in range(lanes):
        decoding.enter(table().id)
    return decoding


def test_a_slice_is_decoded_once_for_all_lanes_of_its_table() -> None:
    decoding, batch = entered(3), batch_of(7)
    taken = []
    for number in range(3):
        stages = StageTimes(gated=number)
        taken.append(
            decoding.decode([batch], versions_of(batch), table(), stages=stages, form=Form.ROWS)
        )
    assert decoding.found == 2
    assert [each.stages.gated for each in taken] == [0, 1, 2]
    assert taken[0].rows is taken[1].rows is taken[2].rows
    assert not decoding._kept, "nobody wants it any more"


def test_another_version_and_another_form_are_decoded_anew() -> None:
    decoding, batch = entered(3), batch_of(7)
    newer = table(version=2)
    for descriptor, form in (
        (table(), Form.ROWS),
        (newer, Form.ROWS),
        (table(), Form.COLUMNS),
    ):
        decoding.decode([batch], versions_of(batch), descriptor, stages=StageTimes(), form=form)
    with_previous = versions_of(batch)
    with_previous.previous = list(batch.values)
    decoding.decode([batch], with_previous, table(), stages=StageTimes(), form=Form.ROWS)
    assert decoding.found == 0


def test_a_lone_feed_keeps_nothing_and_many_slices_make_room() -> None:
    decoding, batch = entered(1), batch_of(7)
    decoding.decode([batch], versions_of(batch), table(), stages=StageTimes(), form=Form.ROWS)
    assert not decoding._kept
    decoding.enter(table().id)
    for number in range(2 * KEPT_MAX):
        batch = batch_of(number)
        decoding.decode([batch], versions_of(batch), table(), stages=StageTimes(), form=Form.ROWS)
    assert len(decoding._kept) == KEPT_MAX
    decoding.leave(table().id)
    assert not decoding._kept


def test_feeds_of_a_node_share(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    decoded = 0
    decode = getattr(shared_decoding, "decode")  # noqa: B009 (not part of its face)

    def counted(*args: object, **kwargs: object) -> object:
        nonlocal decoded
        decoded += 1
        return decode(*args, **kwargs)

    monkeypatch.setattr(shared_decoding, "decode", counted)

    async def scenario() -> None:
        async with await aopen(tmp_path / "data") as database:
            await database.sql("CREATE TABLE t (k INT8 PRIMARY KEY, v STRING)")
            await database.sql("ALTER TABLE t SET (changefeed_optimized = true)")
            lives = []
            for _ in range(5):
                made = await database.sql("CREATE CHANGEFEED FOR TABLE t INTO 'null://'")
                lives.append(database.feed(int(str(made.fetchall()[0][0]))))
            now = await database.node.store.now()
            await asyncio.gather(*(live.wait_until(now) for live in lives))
            for number in range(10):
                await database.sql("INSERT INTO t VALUES ($1, 'v')", [number])
            now = await database.node.store.now()
            await asyncio.gather(*(live.wait_until(now) for live in lives))
            assert [live.rows_emitted for live in lives] == [10] * 5
            assert decoded == 10

    asyncio.run(scenario())
