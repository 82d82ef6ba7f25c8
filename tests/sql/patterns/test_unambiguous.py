"""Which patterns DuckDB's own functions may run."""

from __future__ import annotations

import random

import pytest
import re2

from tailrace.sql.builtins.patterns.letters import Letters
from tailrace.sql.builtins.patterns.matching import Budget
from tailrace.sql.builtins.patterns.native import native_text
from tailrace.sql.builtins.patterns.options import options_of
from tailrace.sql.builtins.patterns.pattern import pattern_of
from tailrace.sql.builtins.patterns.reader import read
from tailrace.sql.builtins.patterns.unambiguous import disjoint, unambiguous
from tests.sql.patterns.random_patterns import random_pattern, random_text

PLAIN = options_of("")[0]


@pytest.mark.parametrize(
    "pattern",
    ["b..", "foo.*bar", "<.*?>", "[a-z]+@[a-z]+", r"\s+", r"\d{3}-\d{2}", "cat|dog", "a(b|c)?d",
     r"(\w+)\W+(\w+)", "^x?$", "(?i)abc"],
)  # fmt: skip
def test_a_pattern_of_one_match_is_native(pattern: str) -> None:
    assert unambiguous(read(pattern, PLAIN).choice)


@pytest.mark.parametrize(
    "pattern",
    ["day|daylight", "a*(ab)?", "(|a)b", "a+b*?", "(a|b)+?", "(a)*", "(?:a?b?)*", ".*foo.*",
     "((a)?b)*", "a*a*"],
)  # fmt: skip
def test_a_pattern_of_several_matches_is_not(pattern: str) -> None:
    assert not unambiguous(read(pattern, PLAIN).choice)


@pytest.mark.parametrize(
    "pattern", [r"\mx", r"\y", "[[:punct:]]", "(?:a{100}){20}", r"[\W_]", "[[:alpha:]é]{200}x*"]
)
def test_what_re2_has_no_words_for_is_not_native(pattern: str) -> None:
    assert native_text(read(pattern, PLAIN).choice) is None


@pytest.mark.parametrize(
    ("pattern", "written"),
    [
        ("a.c", "a(?s:.)c"),
        ("(?n)^a.$", r"(?m:^)a[^\x{a}](?m:$)"),
        ("^a$", r"\Aa\z"),
        ("(?i)k", "[Kk]"),
        (r"a\.b", r"a\.b"),
        ("(a|b)*?", "(a|b)*?"),
    ],
)
def test_nothing_is_left_to_the_options_of_re2(pattern: str, written: str) -> None:
    assert native_text(read(pattern, PLAIN).choice) == written


def test_sets_beyond_ascii_may_overlap() -> None:
    word, other = (read(each, PLAIN).choice for each in (r"\w", "é"))
    assert not disjoint(_letters(word), _letters(other))
    assert disjoint(Letters(ranges=((48, 57),)), Letters(ranges=((97, 122),)))


def _letters(choice: object) -> Letters:
    atom = choice.branches[0][0].atom  # type: ignore[attr-defined]
    assert isinstance(atom, Letters)
    return atom


@pytest.mark.parametrize("seed", range(4))
def test_both_engines_agree_on_random_patterns(seed: int) -> None:
    """Whether a text matches always, and where it does if the pattern is unambiguous."""
    draw = random.Random(seed)
    compared = 0
    for _ in range(400):
        pattern = random_pattern(draw)
        choice = read(pattern, PLAIN).choice
        native = native_text(choice)
        if native is None:
            continue
        ours, theirs = pattern_of(pattern, PLAIN), re2.compile(native)
        for text in (random_text(draw) for _ in range(5)):
            coloured = ours.prepared(text, Budget())
            span, found = ours.search(coloured, 0, Budget()), theirs.search(text)
            assert (span is None) is (found is None), (pattern, text)
            if span is None or not unambiguous(choice):
                continue
            groups = ours.divide(coloured, span, Budget())
            where = [span, *(groups.get(n, (-1, -1)) for n in range(1, ours.groups + 1))]
            assert where == [found.span(n) for n in range(ours.groups + 1)], (pattern, text)
            compared += 1
    assert compared > 200
