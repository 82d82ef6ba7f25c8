"""What a pattern matches, and how that is divided among its groups: PostgreSQL 15's own answers."""

from __future__ import annotations

import pytest

from tailrace.catalog.values.errors import SQLError
from tailrace.sql.builtins.patterns.divisions import AUTOMATA_MAX
from tailrace.sql.builtins.patterns.matching import Budget
from tailrace.sql.builtins.patterns.options import options_of
from tailrace.sql.builtins.patterns.pattern import KnownPatterns, Pattern, pattern_of
from tailrace.sql.builtins.patterns.reader import read
from tailrace.sql.builtins.patterns.searches import every, first


def matched(pattern: str, text: str, flags: str = "") -> list[str | None] | None:
    return first(text, pattern, flags, Budget())


@pytest.mark.parametrize(
    ("pattern", "text", "groups"),
    [
        ("day|daylight", "daylight", ["daylight"]),
        ("a|aab", "xaab", ["aab"]),
        ("a*(ab)?", "aab", ["ab"]),
        ("(a|ab)(c|bcd)(d*)", "abcd", ["ab", "c", "d"]),
        ("(x|xy)(y|z)?", "xyz", ["xy", "z"]),
        ("(|a)b", "ab", ["a"]),
    ],
)
def test_the_longest_match_is_taken(pattern: str, text: str, groups: list[str | None]) -> None:
    assert matched(pattern, text) == groups


@pytest.mark.parametrize(
    ("pattern", "text", "groups"),
    [
        ("Y*([0-9]{1,3})", "XY1234Z", ["123"]),
        ("Y*?([0-9]{1,3})", "XY1234Z", ["1"]),
        (r"(.*)(\d+)(.*)", "abc01234xyz", ["abc0123", "4", "xyz"]),
        (r"(.*?)(\d+)(.*)", "abc01234xyz", ["abc", "0", ""]),
        (r"(?:(.*?)(\d+)(.*)){1,1}", "abc01234xyz", ["abc", "01234", "xyz"]),
        ("(?:ab)+?|x", "abab", ["abab"]),
        ("(a|b)+?", "aaa", ["a"]),
        ("(ab){1,1}c*?", "abcc", ["ab"]),
        ("a{2}b+?", "aabb", ["aab"]),
    ],
)
def test_the_first_preference_is_the_whole_patterns(
    pattern: str, text: str, groups: list[str | None]
) -> None:
    assert matched(pattern, text) == groups


@pytest.mark.parametrize(
    ("pattern", "text", "groups"),
    [
        ("(a*)*", "b", [""]),
        ("(a*?)*", "b", [None]),
        ("(a*)+", "b", [""]),
        ("((a)?b)*", "abb", ["b", None]),
        ("(ab|a|c)+", "abc", ["c"]),
        ("((a)|b){0,2}", "ab", ["b", None]),
        ("((x))", "x", ["x", "x"]),
        ("(a){0}b", "b", [None]),
        ("(?:(a)|b)*c", "abc", [None]),
    ],
)
def test_groups_are_of_the_last_repetition(
    pattern: str, text: str, groups: list[str | None]
) -> None:
    assert matched(pattern, text) == groups


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        (r"\mb", "ab b", (3, 4)),
        (r"a\M", "ab a", (3, 4)),
        (r"\yt", "été t", (4, 5)),
        (r"a\Yb", "a ab", (2, 4)),
        ("[[:<:]]b[[:>:]]", "abb b", (4, 5)),
        (r"\m", "é", (0, 0)),
        (r"\M", " ab", (3, 3)),
        (r"(?:\y|b)+c", "ab bc", (3, 5)),
        (r"(?:\ya?){3}", "a", (0, 1)),
        (r"(?:\m|a\M){6}", "a", (0, 1)),
        ("$", "ab", (2, 2)),
    ],
)
def test_edges_are_those_of_words_of_every_alphabet(
    pattern: str, text: str, found: tuple[int, int]
) -> None:
    known = Pattern(read(pattern, options_of("")[0]))
    assert known.search(known.prepared(text, Budget()), 0, Budget()) == found


@pytest.mark.parametrize(
    ("pattern", "text", "groups"),
    [
        (r"\w+(?=,)", "ab cd,", ["cd"]),
        (r"a(?!b).", "ab ac", ["ac"]),
        (r"(?<=\$)\d+", "12 $34", ["34"]),
        (r"(?<!\d)\d\d(?!\d)", "123 45", ["45"]),
        ("(?=.*b)(?=.*c)a+", "xacb", ["a"]),
        ("(a(?=b))|(a)", "ac", [None, "a"]),
        ("(?=(a))(.)", "ba", ["a"]),
        ("(?<=^|,)x(?=(?!,z),)", "x,z,x,y", ["x"]),
        ("(?:(?=a)a|b(?<=b)){3}", "aba", ["aba"]),
    ],
)
def test_what_is_around_a_place_is_looked_for(
    pattern: str, text: str, groups: list[str | None]
) -> None:
    assert matched(pattern, text) == groups


def test_too_many_questions_of_one_place_are_an_error() -> None:
    for pattern in ("(?=a)" * 101, "".join(f"(?={letter})" for letter in "abcdefg")):
        with pytest.raises(SQLError, match="too complex"):
            Pattern(read(pattern, options_of("")[0]))


def test_a_search_goes_on_with_what_is_before_it() -> None:
    assert every("aab", "^a", "g", Budget()) == [["a"]]
    assert every("a b", r"\m\w", "g", Budget()) == [["a"], ["b"]]


def test_newlines_are_letters_unless_the_flags_say_otherwise() -> None:
    text = "a\nb"
    found = {flags: matched("a.b", text, flags) is not None for flags in ("", "n", "p", "w", "s")}
    assert found == {"": True, "n": False, "p": False, "w": True, "s": True}
    starts = {flags: matched("^b", text, flags) is not None for flags in ("", "n", "p", "w", "s")}
    assert starts == {"": False, "n": True, "p": False, "w": True, "s": False}


def test_many_ways_to_divide_a_text_end_in_an_error() -> None:
    with pytest.raises(SQLError, match="too many ways") as raised:
        first("a" * 20_000, "(a*)(a{99})b?", "", Budget(least=500_000))
    assert raised.value.sqlstate == "54001"


@pytest.mark.parametrize(
    "pattern",
    [
        "(a{255}){255}",
        "a" * 70_000,
        "(" * 200 + ")" * 200,
        "(a)" * 200,
        "".join(["(a)" * 30 + "("] * 9) + "b" + ")" * 9,
    ],
)
def test_a_pattern_that_is_too_large_is_an_error(pattern: str) -> None:
    with pytest.raises(SQLError, match="too complex") as raised:
        Pattern(read(pattern, options_of("")[0]))
    assert raised.value.sqlstate == "2201B"


def test_a_long_repetition_takes_linear_time() -> None:
    assert matched("(?:a*)*b", "a" * 200_000) is None


def test_the_automata_that_are_kept_are_bounded() -> None:
    known = KnownPatterns()
    options = options_of("")[0]
    for number in range(2 * AUTOMATA_MAX):
        known.pattern(f"(a{{{number % 250}}})(b|c){number}", options)
    assert 0 < known.automata <= AUTOMATA_MAX


def test_patterns_are_read_once() -> None:
    options = options_of("i")[0]
    assert pattern_of("once", options) is pattern_of("once", options)
    assert pattern_of("once", options) is not pattern_of("once", options_of("")[0])


def test_the_largest_patterns_need_no_deep_stack() -> None:
    nested = "(" * 49 + "a" + ")" * 49
    assert matched(nested, "a") == ["a"] * 49
    assert matched("(a)" * 99, "a" * 99) == ["a"] * 99
    assert matched("(?:(?=" * 20 + "a" + "))" * 20, "a") == [""]
