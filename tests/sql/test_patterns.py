"""What is told of regular expressions without running them."""

from __future__ import annotations

import pytest

from tailrace.sql.postgres.patterns import groups, in_all_alphabets, may_be_empty


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("foo(bar)?", [(True, False)]),
        ("(a|b)", [(False, False)]),
        ("(a)|(b*)", [(True, False), (True, True)]),
        ("(?:x(a))?b", [(True, False)]),
        (r"\(x\)([^()]+)[](](b*)", [(False, False), (False, True)]),
        ("[[:alpha:](]{2}(x)", [(False, False)]),
        ("(x){0,2}", [(True, False)]),
    ],
)
def test_groups_that_may_be_left_out_or_empty_are_known(
    pattern: str, found: list[tuple[bool, bool]]
) -> None:
    assert [(group.optional, group.empty) for group in groups(pattern)] == found


@pytest.mark.parametrize(
    ("pattern", "empty"), [(r"\s*", True), (r"\s+", False), ("a|", True), ("^(a?)$", True)]
)
def test_a_pattern_that_matches_no_letter_is_known(pattern: str, empty: bool) -> None:
    assert may_be_empty(pattern) is empty


@pytest.mark.parametrize(
    ("pattern", "meant"),
    [
        (r"\w+\d", r"[\pL\p{Nd}_]+\d"),
        (r"[^\w[:upper:]-]", r"[^\pL\p{Nd}_\p{Lu}-]"),
        (r"\\w\b\Z", r"\\w\x08\z"),
    ],
)
def test_letters_are_those_of_every_alphabet(pattern: str, meant: str) -> None:
    assert in_all_alphabets(pattern) == meant
