"""Paths of SQL/JSON. What is expected is what PostgreSQL 15 answers."""

from __future__ import annotations

import pytest

from tailrace.catalog.values.errors import SQLError
from tailrace.sql.builtins.documents.json_paths import first, matches, query

SHOP = '{"name": "desk", "tags": ["wood", 7], "sizes": [{"w": 1, "h": 2.50}, {"w": 3}]}'


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("$.sizes.w", ["1", "3"]),
        ("$.sizes[*].h", ["2.50"]),
        ("$.sizes[last].w", ["3"]),
        ("$.sizes ? (@.w > 1)", ['{"w": 3}']),
        ("$.tags[0 to 9]", ['"wood"', "7"]),
        ("$.missing", []),
        ("$.name[0]", ['"desk"']),
        ("$.tags[*].type()", ['"string"', '"number"']),
        ("$.tags.size()", ["2"]),
        ("$.sizes[last - 1].h", ["2.50"]),
        ("$.sizes ? (!(@.w >= 2) && @.h > -1).h", ["2.50"]),
        ('$.* ? (@.type() == "string")', ['"desk"', '"wood"']),
        ('$.name starts with "d"', ["true"]),
        ('$.tags[*] like_regex "^W" flag "i"', ["true"]),
        ("exists($.sizes[*] ? (@.h > 2 && @.w == 1))", ["true"]),
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
        ("strict $.name", "0A000"),
        ("$.tags.size() + 1", "0A000"),
        ("$.**.w", "0A000"),
        ("($.name > 1) is unknown", "0A000"),
        ('$.tags["a"]', "22033"),
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


def test_deep_paths_are_refused() -> None:
    with pytest.raises(SQLError) as told:
        query("1", "(" * 300 + "1" + ")" * 300)
    assert told.value.sqlstate == "54001"
    for long in (
        "$" + ".a" * 140,
        "$ ? (" + " || ".join(["@ == 1"] * 70) + ")",
        "$" + " ? (@ == 1)" * 30,
    ):
        query("1", long)
    with pytest.raises(SQLError):
        query("1", "$" + ".a" * 1000)
