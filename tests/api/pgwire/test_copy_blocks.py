"""What blocks of lines are read as is what their lines are read as, one by one."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.api.pgwire.copy_formats import batches, make_reader
from tailrace.api.pgwire.copy_formats.batches import BatchBuilder
from tailrace.api.pgwire.copy_formats.blocks import BlockReader
from tailrace.catalog.descriptors.descriptor import Column
from tailrace.catalog.rows import text_columns
from tailrace.catalog.values.column_types import ColumnType
from tailrace.catalog.values.errors import SQLError
from tailrace.catalog.values.type_kinds import TypeKind
from tailrace.sql.parse.statements.copying import build_options
from tailrace.sql.syntax.statements import CopyOptions

TYPES = (
    ColumnType(TypeKind.INT8),
    ColumnType(TypeKind.STRING),
    ColumnType(TypeKind.VARCHAR, width=2),
    ColumnType(TypeKind.INT2),
    ColumnType(TypeKind.FLOAT8),
    ColumnType(TypeKind.DECIMAL, 6, 2),
    ColumnType(TypeKind.DATE),
    ColumnType(TypeKind.TIMESTAMP),
    ColumnType(TypeKind.TIMESTAMPTZ),
    ColumnType(TypeKind.TIMESTAMPTZ, precision=0),
    ColumnType(TypeKind.BOOL),
)
FORMATS: tuple[dict[str, str], ...] = (
    {},
    {"null": ""},
    {"null": "nil", "delimiter": "|"},
    {"format": "csv"},
    {"format": "csv", "null": "NULL"},
    {"format": "csv", "escape": "\\"},
)
VALUES = (
    "", "1", "-7", "+7", " 7", "007", "70000", "9223372036854775808", "1e3", "1E3", ".5", "5.",
    "1.005", "12345.6", "-", "0x1F", "inf", "NaN", "abc", "é", "\ufeff", "\\N", "\\.", "\\t",
    "\\\\", "nil", "NULL", '""', '"a"', '"a""b"', '"a\nb"', 'a"b"', '"', '"1"', "2020-02-29",
    "2021-02-29", "20200101", "2020-01-01 00:00:00", "2020-01-01 10:20:30.123456",
    "2020-01-01 10:20:30.1234567", "2020-01-01 10", "0001-01-01 00:00:00", "t", "\r", "x\0",
    "2020-01-01 10:20:30+00", "2020-01-01 10:20:30.5-05:30", "2020-01-01 10:20:30.1234567Z",
    "2020-02-30 10:20:30Z", "2020-01-01 24:00:00+00", "2020-01-01 23:59:60+0100",
    "2020-01-01 10:20:30 +01", "2020-01-01 10:20:30.123456+14:59", "2020-01-01 10:20:30+15:59",
    "9999-12-31 23:59:59-12", "0001-01-01 00:00:00+12", "2020-1-1 10:20:30Z",
)  # fmt: skip


@st.composite
def questions(draw: st.DrawFn) -> tuple[CopyOptions, list[Column], bytes]:
    """Options, columns, and lines that are sometimes right."""
    options = build_options(dict(draw(st.sampled_from(FORMATS))))
    kinds = draw(st.lists(st.sampled_from(TYPES), min_size=1, max_size=3))
    columns = [
        Column(id=number, name=f"c{number}", type=kind, nullable=draw(st.booleans()))
        for number, kind in enumerate(kinds, start=1)
    ]
    few = draw(st.lists(st.sampled_from(VALUES), min_size=1, max_size=4))
    width = st.sampled_from([len(kinds)] * 9 + [len(kinds) + 1])
    lines = draw(
        st.lists(width.flatmap(lambda n: st.tuples(*[st.sampled_from(few)] * n)), max_size=6)
    )
    return options, columns, "\n".join(map(options.delimiter.join, lines)).encode()


def told(options: CopyOptions, columns: list[Column], data: bytes) -> object:
    reader = make_reader(options, "t", columns)
    try:
        batches = [*reader.feed(data), *reader.end()]
    except SQLError as error:
        return error.sqlstate, error.message, error.detail
    return [repr(tuple(row.values())) for batch in batches for row in batch.to_pylist()]


@settings(max_examples=300)
@given(question=questions(), block_bytes=st.sampled_from([1, 7, 64]))
def test_blocks_read_what_lines_read(
    question: tuple[CopyOptions, list[Column], bytes], block_bytes: int
) -> None:
    options, columns, data = question
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tailrace.api.pgwire.copy_formats.lines.BLOCK_BYTES", block_bytes)
        ours = told(options, columns, data)
        patch.setattr(BlockReader, "read", lambda self, block, first_line: None)
        for module in (batches, text_columns):
            patch.setattr(module, "PLAIN", {})
        assert ours == told(options, columns, data)


def test_plain_lines_are_read_as_a_block() -> None:
    options = build_options({})
    columns = [Column(id=n, name=f"c{n}", type=kind) for n, kind in enumerate(TYPES[:3], start=1)]
    reader = BlockReader(options, BatchBuilder("t", columns))
    batch = reader.read("7\ta b\té\n\\N\t\\N\t\\N".encode(), 1)
    assert batch is not None
    assert [tuple(row.values()) for row in batch.to_pylist()] == [(7, "a b", "é"), (None,) * 3]
