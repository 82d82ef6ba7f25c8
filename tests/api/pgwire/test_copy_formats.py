"""COPY's formats, with bytes alone."""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pytest

from tailrace.api.pgwire.copy_formats import make_reader, make_writer
from tailrace.catalog.descriptors.descriptor import Column
from tailrace.catalog.rows.text_columns import cast_texts
from tailrace.catalog.values.column_types import ColumnType
from tailrace.catalog.values.errors import SQLError
from tailrace.catalog.values.type_kinds import TypeKind
from tailrace.sql import Result, ResultColumn, Row
from tailrace.sql.parse import parse
from tailrace.sql.syntax.statements import CopyFrom, CopyOptions, CopyTo

COLUMNS = (
    Column(id=1, name="id", type=ColumnType(TypeKind.INT8), nullable=False),
    Column(id=2, name="note", type=ColumnType(TypeKind.STRING), nullable=True),
)
AWKWARD = [
    "", "\\N", "nil",
    "\\.", "a\tb", 'say "no"', "a,b", "line\nend", "\r\n", "\\", "\\n", "ü'", " x ",
]  # fmt: skip


def options(written: str) -> CopyOptions:
    (statement,) = parse(f"COPY t FROM STDIN {written}").statements
    assert isinstance(statement, CopyFrom | CopyTo)
    return statement.options


def read(data: bytes, written: str, seed: int = 0) -> list[tuple[object, ...]]:
    reader = make_reader(options(written), "t", COLUMNS)
    random, at = Random(seed), 0
    batches: list[pa.RecordBatch] = []
    while at < len(data):
        size = random.randrange(1, 12)
        batches += reader.feed(data[at : at + size])
        at += size
    batches += reader.end()
    return [tuple(row.values()) for batch in batches for row in batch.to_pylist()]


@pytest.mark.parametrize(
    "written",
    ["", "(DELIMITER '|', NULL '')", "(FORMAT csv)", "(FORMAT csv, HEADER, NULL 'nil')",
     "(FORMAT csv, QUOTE '''', ESCAPE '\\')", "(FORMAT binary)", "(FREEZE on)",
     "CSV HEADER",
     "WITH BINARY", "DELIMITER AS ';'"],
)  # fmt: skip
def test_what_is_written_is_read_back(written: str) -> None:
    texts: list[str | None] = [None, *AWKWARD]
    if "NULL ''" in written:
        texts.remove("")  # in text it is NULL then, as in PostgreSQL
    rows: list[Row] = [(number, text) for number, text in enumerate(texts)]
    columns = [ResultColumn(column.name, column.type) for column in COLUMNS]
    writer = make_writer(options(written), columns)
    data = writer.head + b"".join(writer.row(row) for row in rows) + writer.tail
    table = Result(tag="", columns=tuple(columns), rows=rows).fetch_arrow()
    assert b"".join(writer.rows(table)) == data.removeprefix(writer.head).removesuffix(writer.tail)
    for seed in range(5):
        assert read(data, written, seed) == rows


@pytest.mark.parametrize(
    ("data", "written", "sqlstate", "place"),
    [
        (b"1\ta\nx\tb\n", "", "22P02", 'line 2, column id: "x"'),
        (b"1\ta\n2\n", "", "22P04", "line 2"),
        (b"1\ta\tb\n", "", "22P04", "line 1"),
        (b"1,a\n\\N,b\n", "(FORMAT csv, NULL '\\N')", "23502", "line 2, column id"),
        (b'1,"a\nb"\n2,"c\n', "(FORMAT csv)", "22P04", "line 3"),
        (b"99999999999999999999\ta\n", "", "22003", "line 1, column id"),
        (b"0x10\ta\n", "", "22P02", "line 1, column id"),
        (b"PGCOPY\n\xff\r\n\0" + bytes(8) + b"\0\1\0\0\0\0", "(FORMAT binary)", "22P04", "line 1"),
        (
            b"PGCOPY\n\xff\r\n\0" + bytes(8) + b"\0\2\0\0\0\x08",
            "(FORMAT binary)",
            "22P04",
            "line 1",
        ),
        (b"1\t\xff\n", "", "22021", ""),
        (b"no signature", "(FORMAT binary)", "22P04", ""),
    ],
)
def test_what_does_not_fit_is_named(data: bytes, written: str, sqlstate: str, place: str) -> None:
    with pytest.raises(SQLError) as caught:
        read(data, written)
    assert caught.value.sqlstate == sqlstate
    assert place in (caught.value.detail or "")


def test_text_ends_at_its_mark() -> None:
    assert read(b"1\ta\\x41\\101\\t\n\\.\n2\tb\n", "") == [(1, "aAA\t")]


def test_carriage_returns_may_end_lines() -> None:
    assert read(b"1\ta\r\n2\t\\N\r\n", "") == [(1, "a"), (2, None)]


@pytest.mark.parametrize(
    "written",
    ["(FORMAT xml)", "(DELIMITER 'ab')", "(QUOTE '|')", "(FORMAT csv, DELIMITER '\"')",
     "(NULL 'a\tb')", "(FORMAT binary, HEADER)", "(ENCODING 'latin1')", "(FORMAT csv, FORMAT csv)",
     "(FORCE_NULL (id))", "WITH NONSENSE"],
)  # fmt: skip
def test_options_that_do_not_go_together_are_refused(written: str) -> None:
    with pytest.raises(SQLError):
        options(written)


@pytest.mark.parametrize(
    ("written", "sqlstate"),
    [
        ("(FORMAT csv, FORCE_NULL (note))", "42601"),
        ("CSV FORCE NOT NULL note", "42601"),
        ("WHERE id > 1", "0A000"),
        ("(FORMAT csv) WHERE id > 1", "0A000"),
    ],
)
def test_what_no_client_asks_for_is_refused(written: str, sqlstate: str) -> None:
    with pytest.raises(SQLError) as caught:
        options(written)
    assert caught.value.sqlstate == sqlstate


def test_floats_that_no_double_holds_are_left_to_be_named() -> None:
    float8 = ColumnType(TypeKind.FLOAT8)
    for text in ("1e400", "-1e400", "1e-400"):
        assert cast_texts(float8, pa.array(["1.5", text, None])) is None
    read = cast_texts(float8, pa.array(["0.0", "0e5", "1e-300", None]))
    assert read is not None
    assert read.to_pylist() == [0.0, 0.0, 1e-300, None]
