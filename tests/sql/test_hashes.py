"""hashtext(), whose numbers clients lock by."""

from __future__ import annotations

import pytest

from tailrace.sql.builtins.hashes import hashtext


@pytest.mark.parametrize(
    ("text", "hashed"),
    [
        ("", -1477818771),
        ("a", 1075015857),
        ("migrations", 331260518),
        ("x" * 11, -1494243903),
        ("x" * 12, 631527812),
        ("x" * 13, 28686851),
        ("äöü€", -931435867),
        ("y" * 100, -1909973043),
    ],
)
def test_texts_have_the_hashes_that_postgres_gives_them(text: str, hashed: int) -> None:
    assert hashtext(text) == hashed
