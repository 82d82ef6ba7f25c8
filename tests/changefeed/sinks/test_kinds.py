"""A sink URI is judged by its scheme before a feed is created."""

from __future__ import annotations

import asyncio

import pytest

from tailrace.catalog.values.errors import SQLError
from tailrace.changefeed.sinks import default_kinds
from tests.harness.descriptors import table


def test_unknown_scheme_lists_the_known() -> None:
    with pytest.raises(SQLError, match="'kafka'") as caught:
        default_kinds().kind_of("kafka://broker:9092")
    assert caught.value.sqlstate == "22023"
    assert caught.value.hint == "Known schemes: null."


@pytest.mark.parametrize("text", ["", "mirror.duckdb", "null:"])
def test_text_without_scheme_is_no_uri(text: str) -> None:
    with pytest.raises(SQLError, match="not a sink URI"):
        default_kinds().kind_of(text)


def test_schemes_ignore_case() -> None:
    kinds = default_kinds()
    assert kinds.kind_of("NULL://") is kinds.kind_of("null://")


def test_null_takes_nothing_behind_its_scheme() -> None:
    kind = default_kinds().kind_of("null://somewhere")
    with pytest.raises(SQLError, match="takes nothing"):
        asyncio.run(kind.validate("null://somewhere", [table()], store_id="s"))
