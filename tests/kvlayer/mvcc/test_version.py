"""The version header."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.kvlayer.clock import Timestamp
from tailrace.kvlayer.mvcc import LIVE, TOMBSTONE, Header, body_at, body_of, encode_value, header_of

headers = st.builds(
    Header,
    omitted=st.booleans(),
    expires_at=st.none() | st.integers(1, (1 << 63) - 1).map(Timestamp),
    origin=st.none() | st.integers(0, (1 << 32) - 1),
)


def test_plain_value_is_a_zero_byte_and_its_body() -> None:
    assert encode_value(b"ab") == LIVE + b"ab"
    assert encode_value(None) == TOMBSTONE


@given(st.none() | st.binary(max_size=20), headers)
def test_header_and_body_read_back(body: bytes | None, header: Header) -> None:
    value = encode_value(body, header)
    read = header_of(value)
    assert body_of(value) == body
    assert (read.omitted, read.expires_at, read.origin) == (
        header.omitted,
        header.expires_at,
        header.origin,
    )
    assert read.deleted == (body is None)


def test_expired_value_reads_as_deleted() -> None:
    value = encode_value(b"ab", Header(expires_at=Timestamp(100)))
    assert body_at(value, Timestamp(99)) == b"ab"
    assert body_at(value, Timestamp(100)) is None


def test_unknown_flags_are_refused() -> None:
    with pytest.raises(ValueError, match="later format"):
        body_of(b"\x40ab")
