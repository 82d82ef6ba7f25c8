"""What is a pattern, and what PostgreSQL's words for what is none are."""

from __future__ import annotations

import pytest

from tailrace.catalog.values.errors import SQLError
from tailrace.sql.builtins.patterns import native_pattern
from tests.sql.patterns.by_duckdb import found


@pytest.mark.parametrize(
    "pattern",
    ["[a", "[a[:alpha:", "a{1x}", "a{1", "[b-a]", r"[a-\d]", "[[:nope:]]", "a\\"],
)
def test_a_token_that_is_none_is_an_error(pattern: str) -> None:
    with pytest.raises(SQLError, match="invalid regular expression") as raised:
        native_pattern(pattern, any_case=False)
    assert raised.value.sqlstate == "2201B"


@pytest.mark.parametrize(
    "pattern",
    [r"(a)\1", "a(?=b)", "(?<!a)b", r"\mb", "b[[:>:]]", r"\101", r"[\W-]", "a(?#note)b", "***=a.c",
     "[[.period.]]", "(?i)a", r"\q", r"\x41"],
)  # fmt: skip
def test_what_is_not_supported_names_the_pattern_and_what_to_write(pattern: str) -> None:
    with pytest.raises(SQLError) as raised:
        native_pattern(pattern, any_case=False)
    assert raised.value.sqlstate == "0A000"
    assert pattern in raised.value.message
    assert raised.value.hint


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("[]b]", "]"), ("[a-]", "-"), ("[-a]", "-"), (r"[\\]", "\\"), ("[a^]", "^"),
        ("{", "{"), ("a{,2}", "a{,2}"), ("a{", "a{"), ("^a{02}$", "aa"), ("^a{1,03}$", "aaa"),
        (r"a\bb", "a\bb"),
        (r"\B", "\\"), ("a|", ""), (r"\s", "\x0b"),
        (r"[\s\S]", "é"), (r"\S", "é"), (r"[^\w]", "-"), (r"[\D]", "٣"),
    ],
)  # fmt: skip
def test_a_pattern_matches_the_whole_of(pattern: str, text: str) -> None:
    assert found(text, pattern)
    assert found(text, f"^(?:{pattern})$")


@pytest.mark.parametrize(
    ("pattern", "text"),
    [(r"\d", "٣"), ("[^[:alpha:]]", "é"), (r"[\S]", " "), (r"\s", "\xa0")],
)
def test_a_pattern_does_not_match(pattern: str, text: str) -> None:
    assert not found(text, pattern)


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [("k", "\u212a", False), ("\u212a", "k", True), ("σ", "ς", False), ("ς", "Σ", True),
     ("[À-Ý]", "é", True), ("[[:upper:]]", "a", True), ("ß", "SS", False)],
)  # fmt: skip
def test_other_cases_are_one_step_away(pattern: str, text: str, matches: bool) -> None:
    assert found(text, pattern, any_case=True) is matches
