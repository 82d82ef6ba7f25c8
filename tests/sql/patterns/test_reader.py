"""What is a pattern, and what PostgreSQL's words for what is none are."""

from __future__ import annotations

import pytest

from tailrace.catalog.values.errors import SQLError
from tailrace.sql.builtins.patterns import Pattern
from tests.sql.patterns.by_duckdb import found


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("(", "parentheses () not balanced"),
        ("a)", "parentheses () not balanced"),
        ("[a", "brackets [] not balanced"),
        ("[a[:alpha:", "brackets [] not balanced"),
        ("*a", "quantifier operand invalid"),
        ("a**", "quantifier operand invalid"),
        ("^*", "quantifier operand invalid"),
        ("a(?i)b", "quantifier operand invalid"),
        ("a{2,1}", "invalid repetition count(s)"),
        ("a{256}", "invalid repetition count(s)"),
        ("a{1x}", "invalid repetition count(s)"),
        ("a{1", "braces {} not balanced"),
        ("[b-a]", "invalid character range"),
        (r"[a-\d]", "invalid character range"),
        ("[[:nope:]]", "invalid character class"),
        ("a\\", "invalid escape \\ sequence"),
        (r"\q", "invalid escape \\ sequence"),
        ("(?z)a", "invalid embedded option"),
    ],
)
def test_errors_are_in_postgres_words(pattern: str, reason: str) -> None:
    with pytest.raises(SQLError) as raised:
        Pattern(pattern, any_case=False)
    assert raised.value.sqlstate == "2201B"
    assert raised.value.message == f"invalid regular expression: {reason}"


@pytest.mark.parametrize(
    "pattern",
    [r"(a)\1", "a(?=b)", "(?<!a)b", r"\mb", "b[[:>:]]", r"\101", r"[\W-]", "a(?#note)b", "***=a.c",
     "[[.period.]]"],
)  # fmt: skip
def test_what_is_not_supported_names_the_pattern_and_what_to_write(pattern: str) -> None:
    with pytest.raises(SQLError) as raised:
        Pattern(pattern, any_case=False)
    assert raised.value.sqlstate == "0A000"
    assert pattern in raised.value.message
    assert raised.value.hint


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("[]b]", "]"), ("[a-]", "-"), ("[-a]", "-"), (r"[\\]", "\\"), ("[a^]", "^"),
        ("{", "{"), ("a{,2}", "a{,2}"), ("a{", "a{"), ("^a{02}$", "aa"), ("^a{1,03}$", "aaa"),
        (r"\x41", "A"), (r"\u0041", "A"), (r"\xe9", "é"), (r"a\bb", "a\bb"),
        (r"\B", "\\"), ("a|", ""), (r"\s", "\x0b"),
        (r"[\s\S]", "é"), (r"\S", "é"), (r"[^\w]", "-"), (r"[\D]", "٣"),
    ],
)  # fmt: skip
def test_a_pattern_matches_the_whole_of(pattern: str, text: str) -> None:
    assert found(text, pattern)
    assert found(text, f"^(?:{pattern})$")


@pytest.mark.parametrize("option", "beqtxmnpsw")
def test_other_syntaxes_are_refused(option: str) -> None:
    with pytest.raises(SQLError, match="option") as raised:
        Pattern(f"(?{option})a", any_case=False)
    assert raised.value.sqlstate == "0A000"
    assert raised.value.hint


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
