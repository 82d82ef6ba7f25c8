"""Small texts are tokenized at once, all others part by part: both ways see the same tokens."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot.errors import TokenError

from tailrace.catalog.values.errors import SQLError
from tailrace.sql.parse import lexer
from tailrace.sql.parse.dialect import tokens_of
from tailrace.sql.parse.pieces import pieces

PARTS = ["'", "''", '"', "\\", "--", "/*", "*/", "$", "$1", "$$", "$q$", "E'", "U&'", "x'", "a"]
PARTS += ["e", " ", "\n", ",", ";", "(", ")", "1", "in", "values", "insert", "select"]


def seen(text: str, *, by_parts: bool) -> list[tuple[object, ...]] | str | None:
    """Returns the tokens of a text, or the SQLSTATE of its error."""
    try:
        tokens = lexer._by_parts(text, pieces(text)) if by_parts else tokens_of(text, 0, len(text))
    except SQLError as error:
        return error.sqlstate
    except TokenError:
        return "42601"
    return [(token.token_type, token.text, token.start, token.end) for token in tokens]


@settings(max_examples=600)
@given(st.lists(st.sampled_from(PARTS), max_size=24).map("".join).filter(lexer._is_small))
def test_a_small_text_has_the_tokens_that_it_has_by_parts(text: str) -> None:
    assert seen(text, by_parts=False) == seen(text, by_parts=True)


def test_texts_with_closed_quotes_are_small() -> None:
    assert lexer._is_small("""INSERT INTO t VALUES (1, 'it''s', "a b", '-$$/*')""")
    for open_text in ("SELECT 'a", "SELECT 'a' || '", "SELECT $$a", "-- it's\nSELECT 'a"):
        assert not lexer._is_small(open_text)
