"""Functions that Python computes for DuckDB, by themselves."""

from __future__ import annotations

import pytest

from tailrace.catalog.values.errors import SQLError
from tailrace.sql.builtins.functions.byte_strings import (
    escaped,
    get_bit,
    overlaid,
    set_bit,
    unescaped,
)
from tailrace.sql.builtins.functions.degrees import cosd, cotd, sind, tand
from tailrace.sql.builtins.functions.hashes import hashtext, hashtextextended
from tailrace.sql.builtins.functions.identifiers import parse_ident
from tailrace.sql.builtins.functions.pairs import AGGREGATES, Row
from tailrace.sql.builtins.functions.unicode_forms import unistr


def test_bits_are_counted_from_the_least_of_the_first_byte() -> None:
    assert [get_bit(b"\x05\x80", place) for place in (0, 1, 2, 15)] == [1, 0, 1, 1]
    assert set_bit(b"\x00", 7, 1) == b"\x80"
    with pytest.raises(SQLError, match=r"index 8 out of valid range, 0\.\.7"):
        get_bit(b"\x00", 8)


def test_the_escape_format_reads_back() -> None:
    every = bytes(range(256))
    assert unescaped(escaped(every)) == every
    assert escaped(b"\x00\\\xffA\n") == "\\000\\\\\\377A\n"
    for wrong in ("\\", "\\9", "\\400", "\\12"):
        with pytest.raises(SQLError, match="invalid input syntax for type bytea"):
            unescaped(wrong)


def test_bytes_are_laid_over_others() -> None:
    assert overlaid(b"12345", b"ab", 2) == b"1ab45"
    assert overlaid(b"12345", b"ab", 2, 0) == b"1ab2345"
    assert overlaid(b"12345", b"ab", 9) == b"12345ab"


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ('"SomeSchema".someTable', ["SomeSchema", "sometable"]),
        (' a . "b""c" ', ["a", 'b"c']),
        ("Ünï$1", ["Ünï$1"]),
    ],
)
def test_qualified_names_are_taken_apart(text: str, parts: list[str]) -> None:
    assert parse_ident(text) == parts


@pytest.mark.parametrize("text", ["", "a.", ".a", '"a', '""', "1a", "a b"])
def test_what_is_no_name_is_refused(text: str) -> None:
    with pytest.raises(SQLError, match="string is not a valid identifier"):
        parse_ident(text)


def test_escaped_letters_are_read() -> None:
    assert unistr(r"d\0061t\+000061 \u0441\U00000441 \D83D\DE00 \\") == "data сс 😀 \\"
    for wrong in (r"\00", r"\D83D", r"\DE00", r"\D83Dx", r"\+110000"):
        with pytest.raises(SQLError, match="invalid Unicode"):
            unistr(wrong)


def test_round_angles_have_exact_sines() -> None:
    assert [sind(angle) for angle in (30, 90, 150, 210, -30, 720)] == [0.5, 1, 0.5, -0.5, -0.5, 0]
    assert [cosd(angle) for angle in (0, 60, 120, 180, -60)] == [1, 0.5, -0.5, -1, 0.5]
    assert [tand(45), tand(135), cotd(45), tand(180)] == [1, -1, 1, 0]


def test_a_line_through_points_is_exact() -> None:
    rows: list[Row] = [{"a": 1.0, "b": 2.0}, {"a": None, "b": 3.0}, {"a": 3.0, "b": 6.0}]
    assert AGGREGATES["regr_slope"](rows) == 0.5
    assert AGGREGATES["regr_intercept"](rows) == 0.0
    assert AGGREGATES["corr"](rows) == 1.0
    assert AGGREGATES["covar_samp"](rows[:2]) is None


@pytest.mark.parametrize(
    ("text", "hashed", "seeded"),
    [
        ("", -1477818771, 2755504096093790112),
        ("a", 1075015857, 6761863715122467050),
        ("migrations", 331260518, -6132126226279743133),
        ("x" * 11, -1494243903, -7442607841068353945),
        ("x" * 12, 631527812, -63652156063969188),
        ("x" * 13, 28686851, 5955708238307282035),
        ("äöü€", -931435867, -8430496058205487771),
        ("y" * 100, -1909973043, 1434735495370443212),
    ],
)
def test_texts_have_the_hashes_that_postgres_gives_them(
    text: str, hashed: int, seeded: int
) -> None:
    assert (hashtext(text), hashtextextended(text, 7)) == (hashed, seeded)
    assert hashtextextended(text, 0) % (1 << 32) == hashed % (1 << 32)


def test_a_line_agrees_with_postgres_to_the_last_bit() -> None:
    rows: list[Row] = [{"a": 1.0, "b": 2.0}, {"a": 2.0, "b": 5.0}, {"a": 3.0, "b": 6.0}]
    found = [AGGREGATES[name](rows) for name in ("corr", "regr_sxx", "regr_slope", "regr_r2")]
    assert found == [0.9607689228305228, 8.666666666666666, 0.46153846153846156, 0.9230769230769231]
