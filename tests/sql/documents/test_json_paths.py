"""Paths of SQL/JSON. What is expected is what PostgreSQL 15 answers."""

from __future__ import annotations

import pytest

from tailrace.catalog.values.errors import SQLError
from tailrace.sql.builtins.documents.json_paths.answers import array, exists, first, matches, query

SHOP = '{"name": "desk", "tags": ["wood", 7], "sizes": [{"w": 1, "h": 2.50}, {"w": 3}]}'


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("$.sizes.w", ["1", "3"]),
        ("$.sizes[*].h", ["2.50"]),
        ("$.sizes[last].w", ["3"]),
        ("$.sizes ? (@.w > 1)", ['{"w": 3}']),
        ("$.tags[0 to 9]", ['"wood"', "7"]),
        ("$.**{2}.w", ["1", "3"]),
        ("$.missing", []),
        ("$.name[0]", ['"desk"']),
        ("$.tags[*].type()", ['"string"', '"number"']),
        ("$.tags.size() + 1", ["3"]),
        ('$.name starts with "d"', ["true"]),
        ('$.tags[*] like_regex "^W" flag "i"', ["true"]),
        ("exists($.sizes[*] ? (@.h > 2 && @.w == 1))", ["true"]),
        ("($.name > 1) is unknown", ["true"]),
        ("-$.sizes.w", ["-1", "-3"]),
        ("$.sizes[0].h * 2 - 1", ["4.00"]),
        ("$.sizes[1].w / 7", ["0.42857142857142857143"]),
        ('$."name"', ['"desk"']),
        ("$.sizes[$at].w", ["3"]),
        ("/* all */ $.sizes[0].* ", ["2.50", "1"]),
    ],
)
def test_a_path_leads_to_items(path: str, found: list[str]) -> None:
    items = query(SHOP, path, '{"at": 1}')
    assert sorted(items) == sorted(found)


@pytest.mark.parametrize(
    ("path", "sqlstate"),
    [
        ("strict $.missing", "2203A"),
        ("strict $.sizes.w", "2203A"),
        ("strict $.tags[5]", "22033"),
        ("strict $.name[*]", "22039"),
        ("strict $.name.size()", "22039"),
        ("$.tags[*].abs()", "22036"),
        ('$.tags["a"]', "22033"),
        ("$.tags + 1", "22038"),
        ("-$.name", "2203B"),
        ("1 / 0", "22012"),
        ("$.name.double()", "22036"),
    ],
)
def test_what_a_path_fails_at_is_silent_where_asked(path: str, sqlstate: str) -> None:
    with pytest.raises(SQLError) as told:
        query(SHOP, path)
    assert told.value.sqlstate == sqlstate
    assert array(SHOP, path, silent=True) == "[]" or "tags[*]" in path
    assert exists(SHOP, f"{path} ? (true == true)", silent=True) in (None, False)


@pytest.mark.parametrize(
    ("path", "sqlstate"),
    [
        ("", "22P02"),
        ("$.", "42601"),
        ("$.a ? (@.b)", "42601"),
        ("@.a", "42601"),
        ("last", "42601"),
        ("$ ? (1 == 1", "42601"),
        ("01", "42601"),
        ('"a', "42601"),
        ('$ like_regex "(" ', "2201B"),
        ("$.keyvalue()", "0A000"),
        ("$nobody", "42704"),
    ],
)
def test_what_is_no_path_is_never_silent(path: str, sqlstate: str) -> None:
    with pytest.raises(SQLError) as told:
        query(SHOP, path, silent=True)
    assert told.value.sqlstate == sqlstate


def test_a_match_is_one_truth() -> None:
    assert matches(SHOP, "$.sizes[*].w > 2") is True
    assert matches(SHOP, "$.name > 2") is None, "what cannot be compared is unknown"
    assert first(SHOP, "$.nothing") is None
    with pytest.raises(SQLError, match="single boolean result is expected"):
        matches(SHOP, "$.name")
    assert matches(SHOP, "$.name", silent=True) is None


def test_in_lax_mode_the_first_item_is_enough() -> None:
    assert exists('[1, "x"]', "$[*].double()") is True
    with pytest.raises(SQLError):
        exists('[1, "x"]', "strict $[*].double()")


def test_deep_paths_are_refused() -> None:
    with pytest.raises(SQLError) as told:
        query("1", "(" * 300 + "1" + ")" * 300)
    assert told.value.sqlstate == "54001"
    for long in ("$" + ".a" * 140, "1" + " + 1" * 140, "$" + " ? (@ == 1)" * 30):
        query("1", long)
    with pytest.raises(SQLError):
        query("1", "$" + ".a" * 1000)
