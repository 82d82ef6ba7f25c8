"""Entries and their keys, byte for byte."""

from __future__ import annotations

import pytest

from tailrace.kvlayer.clock import Timestamp
from tailrace.kvlayer.keys import version_key
from tailrace.kvlayer.mvcc import LIVE
from tailrace.kvlayer.raw import (
    Entry,
    EntryUnreadable,
    decode_entry,
    encode_deletion,
    encode_entry,
    keyspace_span,
    raw_key,
    user_key,
)

AT = Timestamp(0x0123456789ABCDEF)
KEY = bytes.fromhex("72 00000068 6b65790000000000fa")


def test_golden_entries() -> None:
    assert encode_entry(b"ab").hex(" ") == "61 62 00"
    assert encode_entry(b"").hex() == "00"
    assert encode_entry(b"ab", AT).hex(" ") == "61 62 01 23 45 67 89 ab cd ef 01"
    assert encode_deletion(AT).hex(" ") == "01 23 45 67 89 ab cd ef 02"


def test_golden_keys() -> None:
    assert raw_key(104, b"key") == KEY
    inverted = "fedcba9876543210"
    assert version_key(KEY, AT).hex() == "10" + KEY.hex() + inverted
    assert keyspace_span(104).start.hex() == "7200000068"
    assert keyspace_span(104).contains(raw_key(104, b"\xff" * 40))
    assert not keyspace_span(104).contains(raw_key(105, b""))


def test_an_entry_costs_nine_bytes_over_its_value_and_a_header() -> None:
    stored = version_key(raw_key(104, b"12345678"), AT) + LIVE + encode_entry(b"value")
    plain = b"\x10" + raw_key(104, b"12345678") + b"value"
    assert len(stored) - len(plain) == 10


@pytest.mark.parametrize(
    "entry", [Entry(b""), Entry(b"\x01"), Entry(b"v", AT), Entry(b"", AT), Entry(b"", AT, True)]
)
def test_entries_come_back(entry: Entry) -> None:
    if entry.deleted:
        assert entry.expires_at is not None
        assert decode_entry(encode_deletion(entry.expires_at)) == entry
    else:
        assert decode_entry(encode_entry(entry.value, entry.expires_at)) == entry


@pytest.mark.parametrize("body", ["", "03", "6104", "6101", "0203040501", "6100000000000000ff02"])
def test_what_is_no_entry_is_refused(body: str) -> None:
    with pytest.raises(EntryUnreadable):
        decode_entry(bytes.fromhex(body))


@pytest.mark.parametrize("key", [b"", b"a", b"\x00", b"12345678", b"\xff" * 17])
def test_keys_come_back(key: bytes) -> None:
    assert user_key(raw_key(7, key)) == key


def test_keys_sort_as_the_users_do() -> None:
    keys = [b"", b"\x00", b"a", b"a\x00", b"a\x00\x00", b"aaaaaaaa", b"aaaaaaaaa", b"b", b"\xff"]
    assert [user_key(key) for key in sorted(raw_key(7, key) for key in keys)] == sorted(keys)


def test_a_key_with_more_behind_it_is_refused() -> None:
    with pytest.raises(ValueError, match="no key of a raw keyspace"):
        user_key(raw_key(7, b"a") + b"\x00")
