"""What stands at a place of a document, and documents with something else there."""

from __future__ import annotations

import pytest

from tailrace.catalog.values.errors import SQLError
from tailrace.sql.builtins.documents import operators

DOCUMENT = '{"a": {"b": [1.50, "two", {"c": null}]}, "k": "v"}'


@pytest.mark.parametrize(
    ("document", "step", "found"),
    [
        (DOCUMENT, "k", '"v"'),
        (DOCUMENT, "none", None),
        (DOCUMENT, 0, None),
        ("[1.50, 2]", 0, "1.50"),
        ("[1.50, 2]", -1, "2"),
        ("[1.50, 2]", 2, None),
        ("[1.50, 2]", "0", None),
        ('"x"', 0, '"x"'),  # a scalar is an array of itself
        ('"x"', -1, '"x"'),
        ("12", 1, None),
        ("12", "a", None),
    ],
)
def test_step(document: str, step: str | int, found: str | None) -> None:
    assert operators.element(document, step) == found


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (["a", "b", "0"], "1.50"),
        (["a", "b", "-1", "c"], "null"),
        (["a", "b", " 1"], '"two"'),
        (["a", "b", "1 "], None),
        (["a", "b", "1_0"], None),
        (["a", "b", "99999999999999999999"], None),
        (["k", "0"], None),
        (["a", None], None),
        ([], DOCUMENT),
    ],
)
def test_path(path: list[str | None], found: str | None) -> None:
    assert operators.at_path(DOCUMENT, path) == found


@pytest.mark.parametrize(
    ("document", "path", "made"),
    [
        ('{"a": 1}', ["a"], '{"a": 2.50}'),
        ('{"a": 1}', ["b"], '{"a": 1, "b": 2.50}'),
        ("[1, 2]", ["-1"], "[1, 2.50]"),
        ("[1, 2]", ["7"], "[1, 2, 2.50]"),
        ("[1, 2]", ["-7"], "[2.50, 1, 2]"),
        ('{"a": 1.50}', ["x", "y"], '{"a": 1.50}'),
        ('{"a": 1.50}', [], '{"a": 1.50}'),
    ],
)
def test_value_is_set(document: str, path: list[str | None], made: str) -> None:
    assert operators.with_value(document, path, "2.50") == made


@pytest.mark.parametrize(
    ("call", "sqlstate"),
    [
        (lambda: operators.with_value("1", ["a"], "2"), "22023"),
        (lambda: operators.without_path('"x"', ["a"]), "22023"),
        (lambda: operators.with_value("[1]", ["x"], "2"), "22P02"),
        (lambda: operators.with_value('{"a": 1}', [None], "2"), "22004"),
    ],
)
def test_place_that_cannot_be_is_an_error(call: object, sqlstate: str) -> None:
    assert callable(call)
    with pytest.raises(SQLError) as caught:
        call()
    assert caught.value.sqlstate == sqlstate
