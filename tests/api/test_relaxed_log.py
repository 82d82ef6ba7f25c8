"""Relaxed logs in a server: CREATE RELAXED LOG, POST /v1/relaxed, and mirrors of them."""

from __future__ import annotations

import io
import json
import re
from base64 import b64encode
from collections.abc import Sequence
from pathlib import Path
from random import Random

import httpx2
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from tailrace.api.cli.relaxed import relaxed_app
from tailrace.kvlayer.relaxed.events import Event, Line, Record, Snapshot, lines_table
from tailrace.kvlayer.relaxed.segment import SegmentWriter
from tailrace.sql.execute.write.relaxed_load import BESIDE_EVENTS
from tests.harness.http_door import ARROW, JSON_LINES, HttpDoor, problem_of
from tests.kvlayer.relaxed.relaxed_lines import DOMAIN, Store

CRASHES = "CREATE TABLE crashes (id INT8 PRIMARY KEY, signal INT8, note STRING)"
START = Snapshot(domain=DOMAIN, cut=0, cells={})


@pytest.fixture
def logged(door: HttpDoor) -> HttpDoor:
    door.sql(CRASHES)
    door.sql("CREATE TABLE issues (id INT8 PRIMARY KEY, assignee STRING)")
    door.sql("CREATE RELAXED LOG d FOR TABLES (crashes, issues)")
    return door


def _post(door: HttpDoor, lines: Sequence[Line], log: str = "d") -> httpx2.Response:
    buffer = io.BytesIO()
    table = lines_table(lines)
    with pa.ipc.new_stream(buffer, table.schema) as writer:
        writer.write_table(table, max_chunksize=500)
    headers = {"Content-Type": ARROW}
    return door.client.post(f"/v1/relaxed/{log}", content=buffer.getvalue(), headers=headers)


def _taken(door: HttpDoor, lines: Sequence[Line]) -> dict[str, object]:
    answer = _post(door, lines)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def _rows(door: HttpDoor) -> list[list[object]]:
    return door.rows("SELECT id, signal, note FROM crashes ORDER BY id")


def _written(store: Store) -> list[list[object]]:
    """The rows that the store's cells make."""
    rows: dict[int, list[object]] = {}
    for (_, row, column), value in store.cells.values.items():
        cells = rows.setdefault(int(row), [int(row), None, None])
        cells[1 if column == "signal" else 2] = int(value) if column == "signal" else value.decode()
    return [rows[key] for key in sorted(rows)]


def _event(id: int, column: str, old: bytes | None, new: bytes | None) -> Event:
    return Event(DOMAIN, id, 0, "crashes", b"1", column, old, new)


def _record(begin: int, end: int, count: int) -> Record:
    return Record(domain=DOMAIN, begin=begin, end=end, count=count)


ONE_CELL: tuple[Line, ...] = (
    START, _event(5, "signal", None, b"6"), _record(0, 6, 1), _record(6, 7, 0),
)  # fmt: skip


def test_change_set_is_rows(logged: HttpDoor) -> None:
    store = Store()
    with store.domain.batch():
        store.write(b"1", "signal", b"6")
        store.write(b"1", "note", b"segmentation fault")
        store.write(b"2", "signal", b"11")
    with store.domain.batch():
        store.write(b"2", "signal", None)  # the row is gone with its last cell
    reply = _taken(logged, [START, *store.lines])
    assert _rows(logged) == [[1, 6, "segmentation fault"]] == _written(store)
    assert reply["change_sets"] == 2  # the snapshot, and what came behind it
    assert "commit_timestamp" in reply


def test_lines_may_come_in_any_order_and_again(logged: HttpDoor) -> None:
    store, random = Store(), Random(3)
    for _ in range(300):
        store.now += 1000
        with store.domain.batch():
            for _ in range(random.randint(1, 3)):
                new = random.choice((None, b"%d" % random.randrange(99)))
                store.write(b"%d" % random.randrange(20), random.choice(("signal", "note")), new)
    lines = [START, *store.lines, *store.lines[:100]]
    random.shuffle(lines)
    for start in range(0, len(lines), 150):
        _taken(logged, lines[start : start + 150])
    assert _rows(logged) == _written(store)
    reply = _taken(logged, lines)
    assert reply["change_sets"] == 0
    assert _rows(logged) == _written(store)


def test_json_lines_are_taken(logged: HttpDoor) -> None:
    event = {"kind": "event", "domain": DOMAIN, "id": 5, "ordinal": 0, "table": "crashes",
             "row": b64encode(b"1").decode(), "column": "signal", "old": None,
             "new": b64encode(b"6").decode()}  # fmt: skip
    lines = [
        {"kind": "snapshot", "domain": DOMAIN, "id": 0, "count": 0},
        event,
        {"kind": "record", "domain": DOMAIN, "begin": 0, "id": 6, "count": 1, "complete": True},
        {"kind": "record", "domain": DOMAIN, "begin": 6, "id": 7, "count": 0, "complete": True},
    ]
    body = "\n".join(map(json.dumps, lines)).encode()
    headers = {"Content-Type": JSON_LINES}
    answer = logged.client.post("/v1/relaxed/d", content=body, headers=headers)
    assert answer.status_code == 200, answer.text
    assert _rows(logged) == [[1, 6, None]]
    wrong = logged.client.post("/v1/relaxed/d", content=b'{"kind": 7}', headers=headers)
    assert wrong.status_code == 400
    assert "not a line of a relaxed log" in problem_of(wrong)["title"]


def test_nobody_else_writes_the_tables(logged: HttpDoor) -> None:
    _taken(logged, ONE_CELL)
    for statement in (
        "INSERT INTO crashes VALUES (2, 1, 'x')",
        "UPSERT INTO crashes VALUES (2, 1, 'x')",
        "UPDATE crashes SET signal = 1",
        "DELETE FROM crashes",
        "TRUNCATE crashes",
        "DROP TABLE crashes",
    ):
        problem = logged.refused(statement)
        assert "is written by relaxed log" in problem["title"], statement
    loaded = logged.load("crashes", JSON_LINES, b'{"id": 9}')
    assert "is written by relaxed log" in problem_of(loaded)["title"]
    assert _rows(logged) == [[1, 6, None]]
    logged.sql("DROP RELAXED LOG d")
    logged.sql("DELETE FROM crashes")
    assert logged.refused("DROP RELAXED LOG d")["sqlstate"] == "42704"


def test_pending_lines_outlive_the_nodes_memory(logged: HttpDoor) -> None:
    """What was taken is durable, though no change set has held it."""
    _taken(logged, [START, _event(5, "signal", None, b"6"), _record(0, 6, 1)])
    logged.node.relaxed._domains.clear()  # as a restart would
    (shown,) = logged.rows("SHOW RELAXED LOGS")
    assert shown[4] == 1  # pending_events
    reply = _taken(logged, [_record(6, 7, 0)])
    assert reply["change_sets"] == 1
    assert _rows(logged) == [[1, 6, None]]
    logged.node.relaxed._domains.clear()
    reply = _taken(logged, [*ONE_CELL, _event(8, "signal", b"6", b"7")])
    assert reply["change_sets"] == 0
    assert _rows(logged) == [[1, 6, None]]


def test_many_pending_lines_of_several_domains_are_shown(logged: HttpDoor) -> None:
    """They are read again beside the loop. A domain is listed by its position, by its pending
    lines, or by both."""
    other = DOMAIN + (1 << 40)
    many = [
        Event(DOMAIN, 8 + row, 0, "crashes", b"%d" % row, "signal", None, b"%d" % row)
        for row in range(BESIDE_EVENTS + 1)
    ]
    _taken(logged, [*ONE_CELL, *many])
    _taken(logged, [Event(other, 5, 0, "crashes", b"9", "signal", None, b"9")])
    shown = logged.rows("SHOW RELAXED LOGS")
    assert [row[2:5] for row in shown] == [
        [f"{DOMAIN:016x}", f"{7:016x}", len(many)],
        [f"{other:016x}", None, 1],
    ]


def test_epochs_without_events_move_a_log(logged: HttpDoor) -> None:
    """What they bring is in no transaction, and is no other node's doing."""
    _taken(logged, ONE_CELL)
    _taken(logged, [_record(7, 9, 0)])
    reply = _taken(
        logged, [_event(10, "signal", b"6", b"8"), _record(9, 12, 1), _record(12, 13, 0)]
    )
    assert reply["change_sets"] == 1
    assert _rows(logged) == [[1, 8, None]]


def test_large_change_set_is_one_transaction(logged: HttpDoor) -> None:
    """So large that it is folded and sorted beside the loop, and written in many slices."""
    rows = BESIDE_EVENTS // 2 + 1
    events = [
        Event(DOMAIN, 5 + row, ordinal, "crashes", b"%d" % row, column, None, b"%d" % row)
        for row in range(rows)
        for ordinal, column in enumerate(("signal", "note"))
    ]
    end = 5 + rows
    reply = _taken(logged, [START, *events, _record(0, end, len(events)), _record(end, end + 1, 0)])
    assert reply["change_sets"] == 2  # the snapshot, and all else
    assert _rows(logged) == [[row, row, str(row)] for row in range(rows)]


def test_gaps_are_shown(logged: HttpDoor) -> None:
    lines: list[Line] = [START, _event(5, "signal", None, b"6"), _record(0, 6, 2), _record(6, 7, 0)]
    reply = _taken(logged, lines)
    assert "1 of 2 events" in str(reply["domains"])
    (shown,) = logged.rows("SHOW RELAXED LOGS")
    assert shown[:4] == ["d", "crashes, issues", f"{DOMAIN:016x}", "0" * 16]
    assert "1 of 2 events; 1 at the end of a batch" in shown[6]
    assert logged.client.get("/v1/relaxed/d").json()["domains"][0]["gaps"]


def test_metrics_say_what_is_missing(logged: HttpDoor) -> None:
    store = Store()
    store.write(b"1", "signal", b"6")
    store.write(b"1", "signal", b"7")
    _taken(logged, [START, *(line for line in store.lines if line != store.log.events[1])])
    text = logged.client.get("/metrics").text
    label = f'{{domain="{DOMAIN:016x}",log="d"}}'
    assert f"tailrace_relaxed_gaps{label} 1.0" in text
    assert f"tailrace_relaxed_pending_events{label} 0.0" in text
    _taken(logged, store.lines)
    text = logged.client.get("/metrics").text
    assert f"tailrace_relaxed_gaps{label} 0.0" in text
    (unquiesced,) = re.findall(r"tailrace_relaxed_unquiesced_seconds\{.*\} (.*)", text)
    assert float(unquiesced) > 3600, "the store's clock stands in 2023"


def test_store_written_behind_the_logs_back_is_named(logged: HttpDoor) -> None:
    _taken(logged, ONE_CELL)
    lines: list[Line] = [_event(8, "signal", b"99", b"7"), _record(7, 9, 1), _record(9, 10, 0)]
    problem = problem_of(_post(logged, lines))
    assert problem["sqlstate"] == "55000"
    assert "cell \"signal\" of row b'1'" in problem["title"]
    assert _rows(logged) == [[1, 6, None]]


@pytest.mark.parametrize(
    ("line", "sqlstate", "said"),
    [
        (Event(DOMAIN, 5, 0, "walls", b"1", "signal", None, b"6"), "42P01", "walls"),
        (Event(DOMAIN, 5, 0, "crashes", b"1", "colour", None, b"6"), "42703", "colour"),
        (Event(DOMAIN, 5, 0, "crashes", b"1", "signal", None, b"six"), "22P02", "signal"),
        (Event(DOMAIN, 5, 0, "crashes", b"one", "signal", None, b"6"), "22P02", "id"),
        (Event(DOMAIN, 5, 0, "crashes", b"1", "note", None, b"\xff"), "22021", "note"),
    ],
)
def test_what_does_not_fit_is_named(
    logged: HttpDoor, line: Event, sqlstate: str, said: str
) -> None:
    problem = problem_of(_post(logged, [START, line, _record(0, 6, 1), _record(6, 7, 0)]))
    assert problem["sqlstate"] == sqlstate, problem
    assert said in problem["title"]
    assert _rows(logged) == []


def test_tables_that_are_no_cells_are_refused(door: HttpDoor) -> None:
    door.sql("CREATE TABLE pair (a INT8, b INT8, PRIMARY KEY (a, b))")
    door.sql("CREATE TABLE strict (a INT8 PRIMARY KEY, b INT8 NOT NULL)")
    for table, reason in (("pair", "not one column"), ("strict", '"b" is NOT NULL')):
        problem = door.refused(f"CREATE RELAXED LOG d FOR TABLES ({table})")
        assert reason in problem["title"]
    assert _post(door, ONE_CELL).status_code == 404


def test_mirror_of_a_log_shows_its_change_sets(logged: HttpDoor) -> None:
    logged.sql("CREATE CHANGEFEED FOR RELAXED LOG d INTO 'duckdb:///d.duckdb'")
    _taken(logged, ONE_CELL)
    logged.wait_for_mirror("d.duckdb")
    assert logged.mirror_rows("d.duckdb", "SELECT * FROM crashes") == [[1, 6, None]]
    problem = logged.refused(
        "CREATE CHANGEFEED FOR RELAXED LOG d INTO 'duckdb:///e.duckdb?apply=row'"
    )
    assert "apply=transaction" in problem["title"]


def test_incomplete_epoch_needs_a_snapshot(logged: HttpDoor) -> None:
    """What a dead process may have written is not known: no state is shown until one is."""
    dead = Record(domain=DOMAIN, begin=7, end=9, count=0, complete=False)
    after: list[Line] = [_event(11, "signal", b"7", b"8"), _record(9, 12, 1), _record(12, 13, 0)]
    _taken(logged, [*ONE_CELL, dead, *after])
    assert _rows(logged) == [[1, 6, None]]
    assert logged.rows("SHOW RELAXED LOGS")[0][3] is None
    cells = {("crashes", b"1", "signal"): b"7", ("crashes", b"3", "note"): b"new"}
    _taken(logged, [Snapshot(domain=DOMAIN, cut=9, cells=cells)])
    assert _rows(logged) == [[1, 8, None], [3, None, "new"]]


def _load(door: HttpDoor, folder: Path, *, status: int = 0) -> str:
    segments = map(str, sorted(folder.glob("*.relaxed")))
    found = CliRunner().invoke(
        relaxed_app, ["load", "d", *segments, "--url", f"http://127.0.0.1:{door.port}"]
    )
    assert found.exit_code == status, found.output
    return found.output if found.exception is None else str(found.exception)


def test_segments_of_any_length_are_loaded_within_the_bound(
    logged: HttpDoor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bound is less than a segment. Events of one process wait for those of the other."""
    monkeypatch.setattr("tailrace.api.cli.relaxed.PIECE_BYTES", 20_000)
    logged.sql("SET CLUSTER SETTING relaxed.pending_bytes_max = 100000")
    first, second = (SegmentWriter(tmp_path / f"{name}.relaxed", DOMAIN) for name in "ab")
    first.snapshot(START)
    note = b"n" * 1000
    for epoch in range(1, 401):
        id = epoch * 10
        first.append(DOMAIN, id, 0, [("crashes", b"%d" % id, "note", None, note)])
        second.append(DOMAIN, id + 1, 0, [("crashes", b"%d" % (id + 1), "note", None, note)])
        first.record(_record(0 if epoch == 1 else id - 7, id + 2, 2))
        second.record(_record(id + 2, id + 3, 0))
    output = _load(logged, tmp_path)
    assert output.splitlines()[-1] == (
        f"domain {DOMAIN:016x}: last cut 0000000000000fa3, 0 events pending"
    )
    assert logged.rows("SELECT count(*) FROM crashes WHERE length(note) = 1000") == [[800]]


def test_snapshot_behind_refused_lines_is_loaded(logged: HttpDoor, tmp_path: Path) -> None:
    """The store was written behind the log's back; what is refused of it stops no load."""
    before, behind = (SegmentWriter(tmp_path / f"{name}.relaxed", DOMAIN) for name in "ab")
    before.snapshot(START)
    before.append(DOMAIN, 5, 0, [("crashes", b"1", "signal", b"9", b"6")])
    before.record(_record(0, 6, 1))
    before.record(_record(6, 7, 0))
    assert "send a snapshot" in _load(logged, tmp_path, status=1)
    behind.snapshot(Snapshot(domain=DOMAIN, cut=20, cells={("crashes", b"1", "signal"): b"4"}))
    behind.append(DOMAIN, 25, 0, [("crashes", b"1", "signal", b"4", b"8")])
    behind.record(_record(20, 26, 1))
    behind.record(_record(26, 27, 0))
    _load(logged, tmp_path)
    assert _rows(logged) == [[1, 8, None]]
