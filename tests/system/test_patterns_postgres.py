"""Random patterns by RE2 and by PostgreSQL 15: the same syntax, the same matches."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from unicodedata import category

import duckdb
import psycopg
import pytest

from benchmarks.servers import postgres_server
from tailrace.catalog.values.errors import SQLError
from tailrace.sql.builtins.patterns import CLASSES, native_pattern
from tests.sql.patterns.by_duckdb import found
from tests.sql.patterns.random_patterns import random_pattern, random_text

pytestmark = pytest.mark.system

PATTERNS = 3_000
FLAGS = ("", "", "i")
LETTERS_END = 0x30000
_UNLIKE = {
    "Cc", "Cf", "Cn", "Co", "Ll", "Lm", "Lo", "Lt", "Lu", "Mc", "Me", "Mn", "Nd", "Nl", "No", "So",
    "Zs",
}  # fmt: skip
"""Categories of which the GNU C library puts some letters elsewhere than Unicode does."""

_MATCHES = """
SELECT regexp_like(s, %s, %s)
FROM unnest(%s::text[]) WITH ORDINALITY AS t (s, n) ORDER BY n
"""


@pytest.fixture(scope="module")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[psycopg.Connection]:
    with postgres_server(tmp_path_factory.mktemp("patterns")) as port:
        address = f"host=127.0.0.1 port={port} user=root dbname=postgres"
        with psycopg.connect(address, autocommit=True) as connection:
            yield connection


@pytest.mark.parametrize("seed", range(2))
def test_random_patterns_match_as_in_postgres(postgres: psycopg.Connection, seed: int) -> None:
    draw = random.Random(seed)
    for _ in range(PATTERNS):
        pattern, flags = random_pattern(draw), draw.choice(FLAGS)
        texts = [random_text(draw) for _ in range(5)]
        rows = postgres.execute(_MATCHES, [pattern, flags, texts]).fetchall()
        for text, row in zip(texts, rows, strict=True):
            ours = found(text, pattern, any_case=flags == "i")
            assert (ours,) == row, (pattern, flags, text)


def test_random_syntax_is_an_error_where_postgres_says_so(postgres: psycopg.Connection) -> None:
    """RE2 takes a quantifier behind an anchor, too."""
    draw = random.Random(7)
    pieces = [
        *"ab()[]{}*+?|^$.\\-,:=12x\n #",
        "[:",
        ":]",
        "(?",
        "(?=",
        "(?!",
        "(?<=",
        "(?<!",
        "{1",
        "{2,",
        "\\m",
        "\\x4",
        "[^",
    ]
    for _ in range(PATTERNS):
        pattern = "".join(draw.choice(pieces) for _ in range(draw.randrange(1, 9)))
        try:
            ours: object = found("ab1", pattern)
        except duckdb.InvalidInputException:
            ours = "2201B"
        except SQLError as error:
            ours = error.sqlstate
            if error.sqlstate == "0A000":
                continue
        try:
            (theirs,) = postgres.execute("SELECT 'ab1' ~ %s", [pattern]).fetchone() or (None,)
        except psycopg.Error as error:
            theirs = error.sqlstate
        if re.search(r"[\^$]([*+?]|\{\d)", pattern) is None:
            assert ours == theirs, pattern


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_classes_have_the_letters_of_postgres(postgres: psycopg.Connection, name: str) -> None:
    query = f"""
        SELECT array_agg(n) FROM generate_series(1, {LETTERS_END}) AS n
        WHERE n NOT BETWEEN 55296 AND 57343 AND chr(n) ~ '[[:{name}:]]'
    """
    ((theirs,),) = postgres.execute(query).fetchall()
    native = native_pattern(f"[[:{name}:]]", any_case=False)
    codes = [code for code in range(1, LETTERS_END + 1) if not 0xD800 <= code <= 0xDFFF]
    letters = "SELECT c FROM unnest($1) AS l (c) WHERE regexp_matches(chr(c), $2)"
    ours = {code for (code,) in duckdb.execute(letters, [codes, native]).fetchall()}
    unlike = {category(chr(code)) for code in ours ^ set(theirs)}
    assert unlike <= _UNLIKE
    assert not any(code < 128 for code in ours ^ set(theirs))
