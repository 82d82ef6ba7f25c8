"""The overlay reads as if its batches were written, against an engine where they are."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.kvlayer.engine import EngineBatch, MemoryEngine
from tailrace.kvlayer.engine.overlay import OverlayReader

KEYS = st.sampled_from([bytes((letter,)) for letter in b"abcdef"])
BATCHES = st.lists(st.tuples(st.dictionaries(KEYS, st.binary(max_size=1)), st.lists(KEYS)))


@settings(max_examples=200)
@given(below=st.dictionaries(KEYS, st.binary(max_size=1)), over=BATCHES, low=KEYS, high=KEYS)
def test_overlay_reads_as_an_engine_that_was_written(
    below: dict[bytes, bytes],
    over: list[tuple[dict[bytes, bytes], list[bytes]]],
    low: bytes,
    high: bytes,
) -> None:
    bottom, written = MemoryEngine(), MemoryEngine()
    for engine in (bottom, written):
        engine.write(EngineBatch(puts=list(below.items())), applied_index=1)
    batches = [EngineBatch(puts=list(puts.items()), deletes=deletes) for puts, deletes in over]
    for index, batch in enumerate(batches, 2):
        written.write(batch, applied_index=index)
    reader = OverlayReader(bottom, batches)
    for reverse in (False, True):
        expected = list(written.scan(low, high, reverse=reverse))
        assert list(reader.scan(low, high, reverse=reverse)) == expected
    assert reader.first(low, high) == written.first(low, high)
    assert reader.get(low) == written.get(low)
