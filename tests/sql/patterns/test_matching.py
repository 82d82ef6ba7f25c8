"""What a pattern matches, and how that is divided among its groups: PostgreSQL 15's own answers."""

from __future__ import annotations

import pytest

from tailrace.catalog.values.errors import SQLError
from tailrace.sql.builtins.patterns import Pattern, found, options_of, pattern_of, replaced

PLAIN = options_of("")[0]


def first(text: str, pattern: str, flags: str) -> list[str | None] | None:
    """The groups of the first match, or the whole where there are none."""
    known = pattern_of(pattern, options_of(flags)[0])
    match = next(known.each_match(text.encode()), None)
    if match is None:
        return None
    numbers = range(1, known.groups + 1) if known.groups else (0,)
    groups = (match.group(number) for number in numbers)
    return [None if group is None else group.decode() for group in groups]


@pytest.mark.parametrize(
    ("pattern", "text", "groups"),
    [
        ("day|daylight", "daylight", ["daylight"]),
        ("a|aab", "xaab", ["aab"]),
        ("a*(ab)?", "aab", ["ab"]),
        ("(x|xy)(y|z)?", "xyz", ["xy", "z"]),
        ("(|a)b", "ab", ["a"]),
        (r"(.*)(\d+)(.*)", "abc01234xyz", ["abc0123", "4", "xyz"]),
        ("Y*([0-9]{1,3})", "XY1234Z", ["123"]),
        ("(ab|a|c)+", "abc", ["c"]),
        ("((x))", "x", ["x", "x"]),
        ("(a){0}b", "b", [None]),
        ("(?:(a)|b)*c", "bc", [None]),
        ("$", "ab", [""]),
    ],
)
def test_the_longest_match_is_taken(pattern: str, text: str, groups: list[str | None]) -> None:
    assert first(text, pattern, "") == groups


@pytest.mark.parametrize(
    ("pattern", "text", "groups"),
    [("<.*?>", "<a><b>", ["<a>"]), ("a+?", "aaa", ["a"]), ("(.*?)b(.*?)c", "abbcc", ["a", "b"])],
)
def test_the_shortest_is_where_each_quantifier_asks(
    pattern: str, text: str, groups: list[str | None]
) -> None:
    assert first(text, pattern, "") == groups


@pytest.mark.parametrize("pattern", [r"(.*?)(\d+)", "(a|b)+?", "ab+?|c"])
def test_a_preference_that_re2_has_not_is_refused_where_it_matters(pattern: str) -> None:
    with pytest.raises(SQLError, match="non-greedy") as raised:
        first("ab1", pattern, "")
    assert raised.value.sqlstate == "0A000"
    assert raised.value.hint
    assert pattern_of(pattern, PLAIN).matches("ab1")


def test_places_are_letters_of_every_alphabet() -> None:
    assert replaced("éà b", r"\s", "-", "g") == "éà-b"
    assert replaced("é", "", "-", "g") == "-é-"


def test_a_search_goes_on_with_what_is_before_it() -> None:
    assert replaced("aab", "^a", "-", "g") == "-ab"


def test_newlines_are_letters() -> None:
    assert found("a\nb", "a.b", "")
    assert not found("a\nb", "^b", "")
    for flag in ("m", "n", "p", "s", "w"):
        with pytest.raises(SQLError, match=f'option "{flag}"'):
            found("a\nb", "a.b", flag)


@pytest.mark.parametrize(
    ("pattern", "native"),
    [
        ("a.c", "a(?s:.)c"),
        ("^a$", r"\Aa\z"),
        ("(?i)k", "[Kk]"),
        (r"a\.b", r"a\.b"),
        ("(a|b)*?", "(a|b)*?"),
    ],
)
def test_nothing_is_left_to_the_options_of_re2(pattern: str, native: str) -> None:
    assert Pattern(pattern, PLAIN).native == native


@pytest.mark.parametrize(
    "pattern", ["(a{255}){255}", "a" * 70_000, "(" * 200 + ")" * 200, "[[:alpha:]é]{200}x*"]
)
def test_a_pattern_that_is_too_large_is_an_error(pattern: str) -> None:
    with pytest.raises(SQLError, match="too complex") as raised:
        Pattern(pattern, PLAIN)
    assert raised.value.sqlstate == "2201B"


def test_a_long_repetition_takes_linear_time() -> None:
    assert first("a" * 200_000, "(?:a*)*b", "") is None
