"""POST /v1/tables/{table}/rows."""

from __future__ import annotations

import io
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from tests.harness.http_door import ARROW, JSON_LINES, HttpDoor, problem_of

TABLE = (
    "CREATE TABLE t (k INT8 PRIMARY KEY, v STRING NOT NULL DEFAULT 'none', d DECIMAL(30,10),"
    " at TIMESTAMPTZ)"
)


@pytest.fixture
def loaded(door: HttpDoor) -> HttpDoor:
    door.sql(TABLE)
    return door


def stream_of(table: pa.Table, *, rows_per_batch: int = 1000) -> bytes:
    buffer = io.BytesIO()
    with pa.ipc.new_stream(buffer, table.schema) as writer:
        writer.write_table(table, max_chunksize=rows_per_batch)
    return buffer.getvalue()


def in_pieces(body: bytes, size: int) -> Iterator[bytes]:
    for start in range(0, len(body), size):
        yield body[start : start + size]


def lines(first: int, count: int) -> bytes:
    return b"".join(b'{"k": %d, "v": "row"}\n' % key for key in range(first, first + count))


def test_json_lines_fill_a_table(loaded: HttpDoor) -> None:
    body = (
        b'{"k": 1, "v": "a", "d": 12345678901234567890.0123456789, "at": "2020-01-01T00:00:00Z"}\n'
        b'\n{"at": null, "k": "2"}\r\n{"k": 3, "d": "1.5"}'
    )
    answer = loaded.load("t", JSON_LINES, body)
    assert answer.status_code == 200, answer.text
    assert answer.json()["rows"] == 3
    assert loaded.rows("SELECT * FROM t ORDER BY k") == [
        [1, "a", "12345678901234567890.0123456789", "2020-01-01T00:00:00Z"],
        [2, "none", None, None],
        [3, "none", "1.5000000000", None],
    ]


def test_commit_timestamp_reads_the_load_back(loaded: HttpDoor) -> None:
    at = loaded.load("t", JSON_LINES, lines(0, 5)).json()["commit_timestamp"]
    loaded.sql("DELETE FROM t")
    assert loaded.rows(f"SELECT count(*) FROM t AS OF SYSTEM TIME '{at}'") == [[5]]


def test_lines_may_be_cut_anywhere(loaded: HttpDoor) -> None:
    answer = loaded.load("t", JSON_LINES, in_pieces(lines(0, 2500), 7))
    assert answer.json()["rows"] == 2500
    assert loaded.rows("SELECT count(*), min(k), max(k) FROM t") == [[2500, 0, 2499]]


def test_empty_body_loads_nothing(loaded: HttpDoor) -> None:
    assert loaded.load("t", JSON_LINES, b"").json() == {"rows": 0}


@pytest.mark.parametrize(
    ("line", "sqlstate", "says"),
    [
        (b'{"k": ', "22P02", "not a JSON object"),
        (b"[1]", "22P02", "not a JSON object"),
        (b'{"k": 1, "w": 2}', "42703", '"w"'),
        (b'{"k": "x"}', "22P02", '"k"'),
        (b'{"k": 9223372036854775808}', "22003", '"k"'),
        (b'{"k": 1, "v": null}', "23502", '"v"'),
        (b'{"v": "a"}', "23502", '"k"'),
        (b'{"k": 1, "v": 5}', "42804", '"v"'),
        (b'{"k": 1, "v": {"a": 1}}', "42804", '"v"'),
        (b'{"k": 1, "d": 1e40}', "22003", '"d"'),
        (b'{"k": 1, "at": "never"}', "22007", '"at"'),
    ],
)
def test_bad_lines_are_named(loaded: HttpDoor, line: bytes, sqlstate: str, says: str) -> None:
    """The transactions before the line's are in, and the error says so."""
    body = lines(10, 1005) + line + b"\n" + lines(5000, 10)
    problem = problem_of(loaded.load("t", JSON_LINES, body))
    assert problem["sqlstate"] == sqlstate
    assert says in problem["title"]
    assert "Line 1006." in problem["detail"]
    assert "1000 rows before this transaction are committed" in problem["detail"]
    assert loaded.rows("SELECT count(*) FROM t") == [[1000]]


def test_existing_keys_are_refused_or_replaced(loaded: HttpDoor) -> None:
    loaded.sql("INSERT INTO t (k, v) VALUES (1500, 'old')")
    problem = problem_of(loaded.load("t", JSON_LINES, lines(0, 2000)))
    assert (problem["status"], problem["sqlstate"]) == (409, "23505")
    assert "1000 rows" in problem["detail"]
    answer = loaded.load("t", JSON_LINES, lines(0, 2000), on_conflict="upsert")
    assert answer.json()["rows"] == 2000
    assert loaded.rows("SELECT v FROM t WHERE k = 1500") == [["row"]]


def test_arrow_streams_fill_a_table(loaded: HttpDoor) -> None:
    table = pa.table(
        {
            "at": pa.array([datetime(2020, 1, 1, tzinfo=UTC), None], pa.timestamp("ms", "UTC")),
            "k": pa.array([1, 2], pa.int16()),
            "d": pa.array([Decimal("1.5"), None], pa.decimal128(5, 2)),
        }
    )
    assert loaded.load("t", ARROW, stream_of(table)).json()["rows"] == 2
    assert loaded.rows("SELECT * FROM t ORDER BY k") == [
        [1, "none", "1.5000000000", "2020-01-01T00:00:00Z"],
        [2, "none", None, None],
    ]


@pytest.mark.parametrize("size", [1, 13, 4096])
def test_arrow_may_be_cut_anywhere(loaded: HttpDoor, size: int) -> None:
    table = pa.table({"k": range(300), "v": pa.array(["a", "b", "c"] * 100).dictionary_encode()})
    answer = loaded.load("t", ARROW, in_pieces(stream_of(table, rows_per_batch=70), size))
    assert answer.json()["rows"] == 300, answer.text
    assert loaded.rows("SELECT v, count(*) FROM t GROUP BY v ORDER BY v") == [
        ["a", 100], ["b", 100], ["c", 100],
    ]  # fmt: skip


def test_dictionaries_may_grow(loaded: HttpDoor) -> None:
    kind = pa.schema([("k", pa.int64()), ("v", pa.dictionary(pa.int8(), pa.string()))])
    buffer = io.BytesIO()
    options = pa.ipc.IpcWriteOptions(emit_dictionary_deltas=True)
    with pa.ipc.new_stream(buffer, kind, options=options) as writer:
        for key, known in enumerate((["a"], ["a", "b"], ["z"])):
            values = pa.DictionaryArray.from_arrays(pa.array([len(known) - 1], pa.int8()), known)
            writer.write_batch(pa.record_batch([pa.array([key]), values], schema=kind))
    assert loaded.load("t", ARROW, buffer.getvalue()).json()["rows"] == 3
    assert loaded.rows("SELECT k, v FROM t ORDER BY k") == [[0, "a"], [1, "b"], [2, "z"]]


def test_damaged_arrow_is_refused(loaded: HttpDoor) -> None:
    """Cut at any place but between messages, or with any byte of the frames turned over."""
    whole = stream_of(pa.table({"k": [1, 2, 3], "v": ["a", "b", "c"]}))
    for body in (b"", b"nonsense of some length", whole[: len(whole) - 20], whole + b"more"):
        problem = problem_of(loaded.load("t", ARROW, body))
        assert (problem["status"], problem["sqlstate"]) == (400, "22P03"), body
    for place in range(0, len(whole), 5):
        turned = bytearray(whole)
        turned[place] ^= 0xFF
        answer = loaded.load("t", ARROW, bytes(turned), on_conflict="upsert")
        assert answer.status_code < 500, (place, answer.text)


def test_wrong_columns_are_named(loaded: HttpDoor) -> None:
    for columns, sqlstate in (
        ({"k": [1], "w": [1]}, "42703"),
        ({"v": ["a"]}, "23502"),
        ({"k": ["x"]}, "22P02"),
        ({"k": [1], "v": pa.array([None], pa.string())}, "23502"),
    ):
        problem = problem_of(loaded.load("t", ARROW, stream_of(pa.table(columns))))
        assert problem["sqlstate"] == sqlstate, columns
    assert loaded.rows("SELECT * FROM t") == []


def test_requests_that_fit_no_table(loaded: HttpDoor) -> None:
    assert problem_of(loaded.load("u", JSON_LINES, lines(0, 9)))["sqlstate"] == "42P01"
    answer = loaded.load("u", ARROW, stream_of(pa.table({"k": [1]})))
    assert problem_of(answer)["sqlstate"] == "42P01"
    assert problem_of(loaded.load("system.settings", JSON_LINES, b""))["status"] >= 400
    assert problem_of(loaded.load("t", "text/csv", b"1,2"))["status"] == 415
    assert problem_of(loaded.load("t", JSON_LINES, b"", on_conflict="ignore"))["status"] == 422
    compressed = {"content-type": JSON_LINES, "content-encoding": "gzip"}
    answer = loaded.client.post("/v1/tables/t/rows", content=b"x", headers=compressed)
    assert problem_of(answer)["status"] == 415


def test_refusal_reaches_a_client_that_still_sends(loaded: HttpDoor) -> None:
    """The error is in the first line, and megabytes follow it."""
    body = in_pieces(b'{"nope": 1}\n' + lines(0, 400_000), 65_536)
    assert problem_of(loaded.load("t", JSON_LINES, body))["sqlstate"] == "42703"


def test_a_small_body_does_not_unpack_to_gigabytes(loaded: HttpDoor) -> None:
    """Compressed buffers, a dictionary's value for each row, and views of one value."""
    rows = 12_500_000
    zeros = pa.Array.from_buffers(pa.int64(), rows, [None, pa.py_buffer(bytes(8 * rows))])
    compressed = pa.ipc.IpcWriteOptions(compression="zstd")
    buffer = io.BytesIO()
    with pa.ipc.new_stream(buffer, pa.schema([("k", pa.int64())]), options=compressed) as writer:
        writer.write_batch(pa.record_batch([zeros], names=["k"]))
    long = pa.array(["x" * 1_000_000])
    shared = pa.DictionaryArray.from_arrays(pa.repeat(pa.scalar(0, pa.int8()), 5000), long)
    keys = pa.array(range(5000))
    _, view, content = long.cast(pa.string_view()).buffers()
    assert view is not None
    repeated = pa.py_buffer(view.to_pybytes()[:16] * 5000)
    views = pa.Array.from_buffers(pa.string_view(), 5000, [None, repeated, content])
    for body, what in (
        (buffer.getvalue(), "that is compressed"),
        (stream_of(pa.table({"k": keys, "v": shared}), rows_per_batch=5000), "whose rows are"),
        (stream_of(pa.table({"k": keys, "v": views}), rows_per_batch=5000), "whose rows are"),
    ):
        assert 0 < len(body) < 2_000_000, len(body)
        problem = problem_of(loaded.load("t", ARROW, body, on_conflict="upsert"))
        assert (problem["status"], problem["sqlstate"]) == (413, "54000"), problem
        assert f"a record batch {what} of more than" in problem["title"], "it was unpacked"


def test_compressed_streams_are_read(loaded: HttpDoor) -> None:
    for codec in ("zstd", "lz4"):
        buffer = io.BytesIO()
        table = pa.table(
            {"k": range(300), "v": pa.array(["a", "b", "c"] * 100).dictionary_encode()}
        )
        options = pa.ipc.IpcWriteOptions(compression=codec)
        with pa.ipc.new_stream(buffer, table.schema, options=options) as writer:
            writer.write_table(table, max_chunksize=100)
        answer = loaded.load("t", ARROW, buffer.getvalue(), on_conflict="upsert")
        assert answer.json()["rows"] == 300, answer.text
