"""The text of arrays."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.catalog.values.array_text import read_array, write_array
from tailrace.catalog.values.errors import SQLError

ELEMENTS = st.lists(st.none() | st.text(max_size=8) | st.sampled_from(["null", "", "a,b", '"\\']))


@given(ELEMENTS)
def test_what_is_written_reads_back(elements: list[str | None]) -> None:
    assert read_array(write_array(elements)) == elements


@pytest.mark.parametrize(
    ("text", "elements"),
    [("{}", []), (" { 1 , NULL,null } ", ["1", None, None]), ('{"a b",c\\,d}', ["a b", "c,d"])],
)
def test_array_is_read(text: str, elements: list[str | None]) -> None:
    assert read_array(text) == elements


@pytest.mark.parametrize("text", ["", "1,2", "{1", "{1,,2}", '{"a}', "{a\\}"])
def test_bad_array_is_refused(text: str) -> None:
    with pytest.raises(SQLError) as caught:
        read_array(text)
    assert caught.value.sqlstate == "22P02"


@pytest.mark.parametrize("text", ["{{1}}", "{ {1,2}, {3} }", "[0:1]={1,2}"])
def test_other_shapes_are_not_supported(text: str) -> None:
    with pytest.raises(SQLError) as caught:
        read_array(text)
    assert caught.value.sqlstate == "0A000"
