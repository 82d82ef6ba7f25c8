"""Results as text: a table to look at, or a form for other programs to read.

table     columns in a frame, as many characters wide as a terminal shows them
records   a line for each value: for rows that are wider than the screen (\\x)
csv, tsv  with a line of names; NULL is empty in CSV and \\N in TSV
json      one array of objects;  ndjson: an object a line
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

import msgspec
from prompt_toolkit.utils import get_cwidth

Value = str | None


class Format(Enum):
    """The formats of rows."""

    TABLE = "table"
    RECORDS = "records"
    CSV = "csv"
    TSV = "tsv"
    JSON = "json"
    NDJSON = "ndjson"


@dataclass(frozen=True, slots=True)
class Rows:
    """A result in the server's text form; `oids` are the columns' types."""

    names: Sequence[str]
    oids: Sequence[int]
    rows: Sequence[Sequence[Value]]


_INTEGERS = frozenset({20, 21, 23})
_FLOATS = frozenset({700, 701})
_NUMBERS = _INTEGERS | _FLOATS | {1700}
_BOOL = 16
_JSON = frozenset({114, 3802})
NULL_SHOWN = "NULL"


def write(rows: Rows, format: Format) -> str:
    """With its last line's end."""
    match format:
        case Format.TABLE:
            return _table(rows)
        case Format.RECORDS:
            return _records(rows)
        case Format.CSV:
            return _csv(rows)
        case Format.TSV:
            return _tsv(rows)
        case Format.JSON:
            objects = ",\n ".join(_objects(rows))
            return f"[{objects}]\n"
        case Format.NDJSON:
            return "".join(f"{one}\n" for one in _objects(rows))


def write_fed(rows: Rows, format: Format, *, first: bool) -> str:
    """Writes a row of a result that has no end: names with the first row alone, the columns of a
    table as wide as the row has them, and JSON as NDJSON."""
    match format:
        case Format.TABLE:
            lines = [rows.names] if first else []
            return "".join(" | ".join(map(_plain, line)) + "\n" for line in [*lines, *rows.rows])
        case Format.RECORDS:
            return "\n".join(_record_lines(rows)) + "\n"
        case Format.CSV | Format.TSV:
            return write(rows, format) if first else write(rows, format).split("\n", 1)[1]
        case Format.JSON | Format.NDJSON:
            return write(rows, Format.NDJSON)


def _table(rows: Rows) -> str:
    names = [_plain(name) for name in rows.names]
    shown = [[_plain(value) for value in row] for row in rows.rows]
    widths = [
        max([get_cwidth(name), *(get_cwidth(row[place]) for row in shown)])
        for place, name in enumerate(names)
    ]
    right = [oid in _NUMBERS for oid in rows.oids]
    lines = [_line(names, widths, [False] * len(widths))]
    lines.append("-+-".join("-" * width for width in widths))
    lines += [_line(row, widths, right) for row in shown]
    count = len(rows.rows)
    lines.append(f"({count} row{'' if count == 1 else 's'})")
    return "\n".join(lines) + "\n"


def _line(values: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    cells = []
    for value, width, to_right in zip(values, widths, right, strict=True):
        blank = " " * (width - get_cwidth(value))
        cells.append(blank + value if to_right else value + blank)
    return " | ".join(cells).rstrip()


def _plain(value: Value) -> str:
    """On one line, and nothing that moves the cursor."""
    if value is None:
        return NULL_SHOWN
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in value)


def _records(rows: Rows) -> str:
    return "\n".join([*_record_lines(rows), f"({len(rows.rows)} rows)"]) + "\n"


def _record_lines(rows: Rows) -> list[str]:
    names = [_plain(name) for name in rows.names]
    width = max((get_cwidth(name) for name in names), default=0)
    lines = []
    for number, row in enumerate(rows.rows, start=1):
        lines.append(f"-[ RECORD {number} ]" + "-" * max(0, width - 4))
        for name, value in zip(names, row, strict=True):
            lines.append(f"{name}{' ' * (width - get_cwidth(name))} | {_plain(value)}")
    return lines


def _csv(rows: Rows) -> str:
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow(rows.names)
    writer.writerows([["" if value is None else value for value in row] for row in rows.rows])
    return written.getvalue()


_TSV = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})


def _tsv(rows: Rows) -> str:
    lines = ["\t".join(rows.names)]
    for row in rows.rows:
        lines.append("\t".join("\\N" if v is None else v.translate(_TSV) for v in row))
    return "\n".join(lines) + "\n"


def _objects(rows: Rows) -> Iterable[str]:
    for row in rows.rows:
        found = {
            name: _json(value, oid)
            for name, value, oid in zip(rows.names, row, rows.oids, strict=True)
        }
        yield msgspec.json.encode(found).decode()


def _json(value: Value, oid: int) -> object:
    """Numbers, booleans and documents as what they are; all else is text."""
    if value is None:
        return None
    if oid == _BOOL:
        return value == "t"
    if oid in _INTEGERS:
        return int(value)
    if oid in _FLOATS and value not in ("NaN", "Infinity", "-Infinity"):
        return float(value)
    if oid in _JSON:
        return msgspec.Raw(value.encode())
    return value
