"""Estimates of a range's size and of its middle key: kept while it is written, never scanned for,
because reading 128 MiB takes the loop a second."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from ..engine import Reader
from ..mvcc import version_bounds
from ..span import Span

SAMPLE_STEP_BYTES = 64 * 1024
"""A key is noted each time this much more was written, until there are too many of them."""

SAMPLES_MAX = 512
"""Then every second one goes, and the step doubles: the spread stays even."""

SAMPLES_MIN = 8
"""With fewer nobody knows where the middle is."""

MEASURED_MAX = 1000
MEASURED_BYTES_MAX = 1024 * 1024
"""A split counts the versions of its halves one by one when there are no more than so many, of so
many bytes, which takes about a millisecond."""

_FORMAT = struct.Struct(">QQ")


class RangeSize:
    """Bytes and versions of one range, and keys at even steps of bytes in between.

    Bytes are those of the log entries that wrote the versions; the engine compresses them. What
    garbage collection removes counts as much as the average version. The keys are forgotten in a
    restart; the counts are saved now and then, and at the end of the store: those of some seconds
    are lost where it is killed.
    """

    __slots__ = ("_next_sample", "_step", "byte_count", "samples", "saved", "version_count")

    def __init__(
        self, byte_count: int = 0, version_count: int = 0, samples: Sequence[bytes] = ()
    ) -> None:
        self.byte_count = byte_count
        self.version_count = version_count
        self.samples = list(samples)
        self.saved = True
        """Whether the store has the counts as they are: whoever makes ranges writes them."""
        self._step = SAMPLE_STEP_BYTES
        self._next_sample = byte_count + self._step

    @classmethod
    def measured(cls, reader: Reader, span: Span) -> RangeSize | None:
        """By reading all versions of the span; None if there are more than `MEASURED_MAX`, or they
        have more than `MEASURED_BYTES_MAX`."""
        byte_count = version_count = 0
        for engine_key, value in reader.scan(*version_bounds(span)):
            if not span.contains(engine_key[1:-8]):
                continue
            byte_count += len(engine_key) + len(value)
            version_count += 1
            if version_count > MEASURED_MAX or byte_count > MEASURED_BYTES_MAX:
                return None
        return cls(byte_count, version_count)

    @classmethod
    def decode(cls, data: bytes) -> RangeSize:
        return cls(*_FORMAT.unpack(data))

    def encode(self) -> bytes:
        return _FORMAT.pack(self.byte_count, self.version_count)

    def note_written(self, keys: Sequence[bytes], byte_count: int) -> None:
        """Versions of these keys take `byte_count` bytes of the log."""
        self.byte_count += byte_count
        self.version_count += len(keys)
        self.saved = False
        if self.byte_count >= self._next_sample:
            self._sample(keys[len(keys) // 2])

    def note_removed(self, version_count: int) -> None:
        """Takes so many versions off."""
        if self.version_count:
            removed = min(version_count, self.version_count)
            self.byte_count -= self.byte_count * removed // self.version_count
            self.version_count -= removed
            self.saved = False

    def borders(self, parts: int) -> list[bytes]:
        """Keys that would cut the range into about equal parts; fewer when it is not known well
        enough, or one key takes more than a part."""
        if len(self.samples) < SAMPLES_MIN:
            return []
        found = sorted(self.samples)
        picked = {found[len(found) * part // parts] for part in range(1, parts)}
        return sorted(picked - {found[0]})

    def split_at(self, key: bytes) -> tuple[RangeSize, RangeSize]:
        """The sizes of the halves: by the samples on either side, or by halves."""
        left = [sample for sample in self.samples if sample < key]
        right = [sample for sample in self.samples if sample >= key]
        known = len(self.samples) >= SAMPLES_MIN
        share = len(left) / len(self.samples) if known else 0.5
        left_bytes, left_versions = int(self.byte_count * share), int(self.version_count * share)
        return (
            RangeSize(left_bytes, left_versions, left),
            RangeSize(self.byte_count - left_bytes, self.version_count - left_versions, right),
        )

    def share_of(self, span: Span, *, least: int) -> int | None:
        """The bytes of a part of the range, by the samples in it; None where these are less than
        `least`: each stands for a step of bytes."""
        inside = sum(span.contains(sample) for sample in self.samples)
        if inside < least or len(self.samples) < SAMPLES_MIN:
            return None
        return self.byte_count * inside // len(self.samples)

    def joined(self, other: RangeSize) -> RangeSize:
        return RangeSize(
            self.byte_count + other.byte_count,
            self.version_count + other.version_count,
            (self.samples + other.samples)[: SAMPLES_MAX - 1],
        )

    def _sample(self, key: bytes) -> None:
        self.samples.append(key)
        if len(self.samples) >= SAMPLES_MAX:
            del self.samples[::2]
            self._step *= 2
        self._next_sample = self.byte_count + self._step

    def __repr__(self) -> str:
        return f"<RangeSize {self.byte_count} bytes in {self.version_count} versions>"
