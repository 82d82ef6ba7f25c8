"""Functions that Python computes for DuckDB, by themselves."""

from __future__ import annotations

import pytest

from tailrace.catalog.values.errors import SQLError
from tailrace.sql.builtins.functions.byte_strings import (
    escaped,
    overlaid,
    unescaped,
)
from tailrace.sql.builtins.functions.hashes import hashtext, hashtextextended


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
