"""Names as statements write them and as SQL prints them."""

from __future__ import annotations

import pytest

from tailrace.catalog.descriptors.names import TableName, own_name, quote_identifier


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("flights", "flights"),
        ("_t1", "_t1"),
        ("Flights", '"Flights"'),
        ("1st", '"1st"'),
        ("tail number", '"tail number"'),
        ('a"b', '"a""b"'),
        ("order", '"order"'),
        ("été", '"été"'),
        ("", '""'),
    ],
)
def test_identifier_is_quoted_where_it_must_be(name: str, written: str) -> None:
    assert quote_identifier(name) == written


def test_full_name_is_printed_whole() -> None:
    name = TableName.resolve(["Main", "t"], current_database="defaultdb")
    assert str(name) == 'defaultdb."Main".t'


@pytest.mark.parametrize("name", ["t", "Order", 'a"b', "dot.dot", "", "a b"])
def test_a_full_name_tells_the_tables_own(name: str) -> None:
    assert own_name(str(TableName("shop", "public", name))) == name
