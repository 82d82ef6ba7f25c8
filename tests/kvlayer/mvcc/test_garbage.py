"""What garbage collection takes, slice by slice."""

from __future__ import annotations

from random import Random

import pytest

from tailrace.kvlayer.clock import Timestamp
from tailrace.kvlayer.command import Command, RemoveVersions, WriteValue, engine_batch
from tailrace.kvlayer.engine import MemoryEngine
from tailrace.kvlayer.mvcc import encode_value, find_garbage, read_at
from tailrace.kvlayer.span import Span
from tests.harness.stores import key

SPAN = Span.prefix(key(""))
THRESHOLD = Timestamp(120)


class Versions:
    """An engine, and what was written into it."""

    def __init__(self) -> None:
        self.engine = MemoryEngine()
        self.written: dict[tuple[bytes, int], bytes | None] = {}

    def write(self, name: bytes, ts: int, body: bytes | None) -> None:
        self.written[name, ts] = body
        self._apply(WriteValue(Timestamp(ts), [name], [encode_value(body)]))

    def collect(self, *, entries: int, resume: bytes | None = None) -> tuple[int, bytes | None]:
        found = find_garbage(self.engine, SPAN, THRESHOLD, resume=resume, entries=entries)
        self._apply(RemoveVersions(found.keys, found.timestamps))
        return len(found.keys), found.resume

    def _apply(self, op: WriteValue | RemoveVersions) -> None:
        batch = engine_batch(Command(1, Timestamp(0), [op]))
        self.engine.write(batch, applied_index=self.engine.applied_index + 1)

    def read(self, name: bytes, at: int) -> bytes | None:
        found = read_at(self.engine, name, Timestamp(at))
        return None if found is None else found[1][1:] if found[1][0] == 0 else None

    def expected(self, name: bytes, at: int) -> bytes | None:
        older = [ts for key_, ts in self.written if key_ == name and ts <= at]
        return self.written[name, max(older)] if older else None


def test_a_slice_is_bounded_within_one_key_and_in_bytes() -> None:
    """Versions above the threshold were read to the last of them, and values whatever their
    size."""
    versions = Versions()
    for ts in range(101, 501):
        versions.write(key("hot"), ts, b"v")
    for number in range(20):
        versions.write(key(f"wide {number:02}"), 100, b"v" * 60_000)
    slices, resume, removed = 0, None, 0
    while True:
        gone, resume = versions.collect(entries=50, resume=resume)
        slices, removed = slices + 1, removed + gone
        if resume is None:
            break
    assert removed == 19, "the versions below the one that a reader at the threshold sees"
    assert slices >= 20, "a wide value fills a slice"
    assert versions.expected(key("hot"), 120) == versions.read(key("hot"), 120)
    first = find_garbage(versions.engine, SPAN, THRESHOLD, resume=None, entries=50)
    assert first.resume is not None
    assert first.resume.startswith(b"".join([first.resume[:1], key("hot")])), "it ends within it"


def test_only_what_no_reader_sees_goes() -> None:
    versions = Versions()
    for ts, body in ((90, b"a"), (100, b"b"), (110, b"c"), (130, b"d")):
        versions.write(key("live"), ts, body)
    versions.write(key("gone"), 90, b"a")
    versions.write(key("gone"), 115, None)
    versions.write(key("gone later"), 90, b"a")
    versions.write(key("gone later"), 125, None)
    assert versions.collect(entries=100) == (4, None)
    assert versions.collect(entries=100) == (0, None)
    assert versions.read(key("gone later"), 121) == b"a"


def test_deletion_hides_older_versions_to_the_last_slice() -> None:
    """Were it the first to go, a reader above the threshold would see what was deleted."""
    versions = Versions()
    for ts in range(1, 40):
        versions.write(key("a"), ts, b"%d" % ts)
    versions.write(key("a"), 100, None)
    resume: bytes | None = None
    slices = 0
    while True:
        _, resume = versions.collect(entries=5, resume=resume)
        slices += 1
        assert versions.read(key("a"), 121) is None
        if resume is None:
            break
    assert slices > 3
    assert list(versions.engine.scan(b"\x10", b"\x11")) == []


@pytest.mark.parametrize("seed", range(60))
def test_no_slice_changes_what_is_read_above_the_threshold(seed: int) -> None:
    random, versions = Random(seed), Versions()
    names = [key(name) for name in "abc"]
    for ts in sorted(random.sample(range(1, 160), 60)):
        body = None if random.random() < 0.4 else b"%d" % ts
        versions.write(random.choice(names), ts, body)
    resume: bytes | None = None
    entries = random.choice((1, 3, 10))
    while True:
        _, resume = versions.collect(entries=entries, resume=resume)
        for name in names:
            for at in range(THRESHOLD, 161):
                assert versions.read(name, at) == versions.expected(name, at), (name, at)
        if resume is None:
            break
    assert versions.collect(entries=100)[0] == 0, "nothing was left over"
