"""Keys: bytes that sort as their values do, and split into what they were made of."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.kvlayer import keys
from tailrace.kvlayer.clock import MAX_TIMESTAMP, Timestamp

ints = st.integers(-(2**63), 2**63 - 1)
timestamps = st.integers(0, MAX_TIMESTAMP).map(Timestamp)
# From few letters, so that prefixes and padding bytes meet.
strings = st.binary(max_size=20) | st.text("\x00\x01\xff", max_size=20).map(str.encode)
ids = st.integers(0, 2**32 - 1)
row_keys = st.tuples(ids, strings).map(lambda pair: keys.table_prefix(pair[0]) + pair[1])


@given(ints, ints)
def test_integers_sort_as_values(one: int, other: int) -> None:
    assert (keys.encode_int(one) < keys.encode_int(other)) == (one < other)
    assert keys.decode_int(b"xx" + keys.encode_int(one), 2) == (one, 10)


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1])
def test_integers_out_of_range_are_refused(value: int) -> None:
    with pytest.raises(struct.error):
        keys.encode_int(value)


@given(strings, strings)
def test_bytes_sort_as_values(one: bytes, other: bytes) -> None:
    first, second = keys.encode_bytes(one), keys.encode_bytes(other)
    assert (first < second) == (one < other)
    assert (first == second) == (one == other)


@given(strings, strings, ints)
def test_bytes_delimit_themselves(one: bytes, other: bytes, number: int) -> None:
    encoded = keys.encode_bytes(one) + keys.encode_bytes(other) + keys.encode_int(number)
    first, offset = keys.decode_bytes(encoded, 0)
    second, offset = keys.decode_bytes(encoded, offset)
    assert (first, second, keys.decode_int(encoded, offset)[0]) == (one, other, number)
    if one != other:
        assert not keys.encode_bytes(one).startswith(keys.encode_bytes(other))


def test_eight_bytes_take_a_second_group() -> None:
    assert keys.encode_bytes(b"12345678") == b"12345678\xff" + bytes(8) + b"\xf7"


@given(st.tuples(strings, ints), st.tuples(strings, ints))
def test_columns_together_sort_as_tuples(one: tuple[bytes, int], other: tuple[bytes, int]) -> None:
    encoded = [keys.encode_bytes(text) + keys.encode_int(number) for text, number in (one, other)]
    assert (encoded[0] < encoded[1]) == (one < other)


@pytest.mark.parametrize(
    "damaged",
    [b"", b"abc", b"abcdefgh", b"abc\x00\x00\x00\x00\x00\x01", b"abc\x00\x00\x00\x00x\xfa"],
)
def test_damaged_bytes_are_refused(damaged: bytes) -> None:
    with pytest.raises(ValueError, match=r"group"):
        keys.decode_bytes(damaged, 0)


@given(st.floats(allow_nan=False), st.floats(allow_nan=False))
def test_floats_sort_as_values(one: float, other: float) -> None:
    assert (keys.encode_float(one) < keys.encode_float(other)) == (one < other)
    assert keys.decode_float(keys.encode_float(one), 0) == (one, 8)


def test_nan_sorts_first_and_zeros_are_one() -> None:
    nan, negative_infinity = keys.encode_float(float("nan")), keys.encode_float(float("-inf"))
    assert nan < negative_infinity
    decoded, _ = keys.decode_float(nan, 0)
    assert decoded != decoded
    assert keys.encode_float(-0.0) == keys.encode_float(0.0)


@given(row_keys, timestamps, timestamps)
def test_newer_versions_sort_first(key: bytes, one: Timestamp, other: Timestamp) -> None:
    assert (keys.version_key(key, one) < keys.version_key(key, other)) == (one > other)
    assert keys.split_version_key(keys.version_key(key, one)) == (key, one)


@given(row_keys, row_keys, timestamps, timestamps)
def test_time_index_sorts_by_time(key: bytes, other: bytes, one: Timestamp, two: Timestamp) -> None:
    entry = keys.time_index_key(key, one)
    assert keys.split_time_index_key(entry) == (key, one)
    if one < two and key[:5] == other[:5]:
        assert entry < keys.time_index_key(other, two)


@given(row_keys, timestamps, timestamps, timestamps)
def test_time_index_bounds_are_exclusive_inclusive(
    key: bytes, at: Timestamp, after: Timestamp, upto: Timestamp
) -> None:
    start, end = keys.time_index_bounds(key[: keys.KEYSPACE_LENGTH], after, upto)
    assert (start <= keys.time_index_key(key, at) < end) == (after < at <= upto)


@given(ids, st.integers(0, 2**16 - 1), strings)
def test_index_span_is_inside_its_table(table_id: int, index_id: int, rest: bytes) -> None:
    key = keys.index_prefix(table_id, index_id) + rest
    assert keys.index_span(table_id, index_id).contains(key)
    assert keys.table_span(table_id).covers(keys.index_span(table_id, index_id))
    assert keys.table_id_of(key) == table_id
    assert keys.ALL_KEYS.contains(key)
