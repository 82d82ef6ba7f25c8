"""The SQL shell's parts: where statements end, how results and errors look."""

from __future__ import annotations

import io
import json

import pytest

from tailrace.api.cli.shell.client import ADDRESS, Client, ConnectFailed
from tailrace.api.cli.shell.commands import statements_of
from tailrace.api.cli.shell.errors import pointed
from tailrace.api.cli.shell.formats import Format, Rows, write
from tailrace.api.cli.shell.harmless import Harmless, harmless
from tailrace.api.cli.shell.splitting import split
from tests.harness.http_door import HttpDoor

ROWS = Rows(
    names=["k", "note", "ok", "doc"],
    oids=[20, 25, 16, 3802],
    rows=[["1", "tab\there", "t", '{"a": [1]}'], ["20", None, "f", "null"]],
)


@pytest.mark.parametrize(
    ("text", "complete", "rest"),
    [
        ("SELECT 1", [], "SELECT 1"),
        ("SELECT 1;", ["SELECT 1;"], ""),
        ("SELECT ';'; SEL", ["SELECT ';';"], " SEL"),
        ("SELECT 1; SELECT 'open;", ["SELECT 1;"], " SELECT 'open;"),
        ("SELECT 1; SELECT 'open; still", ["SELECT 1;"], " SELECT 'open; still"),
        ('SELECT 1 AS ";"; ;', ['SELECT 1 AS ";";'], ""),
        ("SELECT $$a;b$$; x", ["SELECT $$a;b$$;"], " x"),
    ],
)
def test_statements_end_at_semicolons(text: str, complete: list[str], rest: str) -> None:
    assert split(text) == (complete, rest)


def test_tables_align_by_width() -> None:
    assert write(Rows(["a", "名"], [25, 23], [["x", "7"], [None, "12"]]), Format.TABLE) == (
        "a    | 名\n-----+---\nx    |  7\nNULL | 12\n(2 rows)\n"
    )


def test_programs_read_back_what_was_written() -> None:
    assert write(ROWS, Format.CSV).splitlines()[1] == '1,tab\there,t,"{""a"": [1]}"'
    assert write(ROWS, Format.TSV).splitlines()[1:] == [
        '1\ttab\\there\tt\t{"a": [1]}', "20\t\\N\tf\tnull",
    ]  # fmt: skip
    objects = [
        {"k": 1, "note": "tab\there", "ok": True, "doc": {"a": [1]}},
        {"k": 20, "note": None, "ok": False, "doc": None},
    ]
    assert json.loads(write(ROWS, Format.JSON)) == objects
    assert [json.loads(line) for line in write(ROWS, Format.NDJSON).splitlines()] == objects


def test_no_rows_are_an_empty_array() -> None:
    assert json.loads(write(Rows(["k"], [20], []), Format.JSON)) == []


def test_records_stand_one_value_a_line() -> None:
    assert "note | tab\\there" in write(ROWS, Format.RECORDS)


def test_the_caret_stands_under_its_word() -> None:
    assert pointed("SELECT 1,\n  FRM t", 13) == ["LINE 2:   FRM t", "          ^"]


def test_commands_quote_the_names_they_are_given() -> None:
    assert statements_of("d", "shop.Orders") is not None
    assert statements_of("sf", "Orders") == ('SHOW CREATE TABLE "Orders"',)
    assert statements_of("d", "") == ("SHOW TABLES",)
    assert statements_of("nosuch", "") is None


def test_a_command_without_an_argument_takes_none() -> None:
    assert statements_of("dt", "order*") is None
    assert statements_of("dt", ";") == ("SHOW TABLES",)


ESCAPE = "\x1b]0;renamed\x07\x9b2J"


def test_names_and_values_move_no_cursor() -> None:
    for format in (Format.TABLE, Format.RECORDS):
        written = write(Rows([ESCAPE], [25], [[ESCAPE]]), format)
        assert all(c.isprintable() or c == "\n" for c in written)


def test_what_a_terminal_would_obey_is_shown() -> None:
    stream = io.StringIO()
    print(f"ERROR:  {ESCAPE}\n\tand more", file=Harmless(stream))
    assert stream.getvalue() == "ERROR:  \\x1b]0;renamed\\x07\\x9b2J\n\tand more\n"
    assert harmless("plain é 名") == "plain é 名"


@pytest.mark.parametrize(
    "form", ["127.0.0.1:{}", "http://127.0.0.1:{}", "postgresql://x@127.0.0.1:{}"]
)
def test_a_wrong_address_is_told_the_right_one(door: HttpDoor, form: str) -> None:
    with pytest.raises(ConnectFailed) as refused:
        Client(form.format(door.port), print)
    assert str(refused.value).endswith(ADDRESS)
