"""Span configurations: how long old versions of which keys are kept, and how large ranges grow.

The catalog writes them (a table's `gc.ttlseconds`), garbage collection and the range queue read
them. They are rows of a keyspace of their own, so they survive and are read at any time:

    set([t7, t8), ttl 600)       [t7, t8) ttl 600
    set([t7a, t7b), ttl 60)      [t7, t7a) ttl 600   [t7a, t7b) ttl 60   [t7b, t8) ttl 600
    for_span([t7, t8))           ttl 600: the longest, so that nothing goes too early
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol, TypeVar

import msgspec

from .clock import MAX_TIMESTAMP, Timestamp
from .engine import Reader
from .mvcc import scan_at
from .span import Span, subtract
from .txn import Evaluation

T = TypeVar("T")

KEYSPACE = b"c\x00\x00\x00\x00"
ENTRIES = Span.prefix(KEYSPACE)


RANGE_BYTES_LEAST = 64 * 1024
"""Ranges that split at less would cost more than what is in them."""


class SpanConfig(msgspec.Struct, array_like=True, frozen=True, kw_only=True):
    """Settings of the keys of a span; None is the cluster setting."""

    gc_ttl_seconds: float | None = None
    range_max_bytes: int | None = None

    def __post_init__(self) -> None:
        ttl, size = self.gc_ttl_seconds, self.range_max_bytes
        if ttl is not None and not 0 <= ttl < float("inf"):
            raise ValueError(f"the time to live must be zero seconds or more, not {ttl}")
        if size is not None and size < RANGE_BYTES_LEAST:
            raise ValueError(
                f"the size of a range must be {RANGE_BYTES_LEAST} bytes or more, not {size}"
            )


DEFAULT = SpanConfig()


class _Entry(msgspec.Struct, array_like=True, frozen=True):
    """A row. Its key is the keyspace and the span's start."""

    end: bytes
    config: SpanConfig


class ConfigStore(Protocol):
    """The store, as far as configurations need it."""

    @property
    def engine(self) -> Reader: ...

    async def one_phase(self, evaluate: Callable[[Evaluation], T]) -> tuple[T, Timestamp]: ...


_encode = msgspec.msgpack.Encoder().encode
_decoder = msgspec.msgpack.Decoder(_Entry)


class SpanConfigs:
    """The configurations of a store. Entries never overlap; keys without one have the default."""

    def __init__(self, store: ConfigStore) -> None:
        self._store = store

    async def set(self, span: Span, config: SpanConfig) -> None:
        """From now on the keys of `span` have `config`, whatever they had. Durable on return."""

        def evaluate(evaluation: Evaluation) -> None:
            self._replace(evaluation, span, config)

        await self._store.one_phase(evaluate)

    async def reset(self, span: Span) -> None:
        """The keys of `span` have the default again."""
        await self.set(span, DEFAULT)

    def entries(self) -> list[tuple[Span, SpanConfig]]:
        """The settings of spans, in key order."""
        return list(_decode(scan_at(self._store.engine, ENTRIES, MAX_TIMESTAMP)))

    def in_span(self, span: Span) -> list[tuple[Span, SpanConfig]]:
        """The whole span, cut by configuration, in key order."""
        found = [(part, config) for part, config in self.entries() if part.overlaps(span)]
        covered = [
            (shared, config)
            for part, config in found
            if (shared := part.intersect(span)) is not None
        ]
        gaps = subtract(span, [part for part, _ in covered])
        return sorted([*covered, *((gap, DEFAULT) for gap in gaps)], key=lambda entry: entry[0])

    def for_span(self, span: Span) -> SpanConfig:
        """The settings of all keys of the span: the longest time to live (None, if some key has
        none of its own), and the smallest range size that any of them wants."""
        configs = [config for _, config in self.in_span(span)]
        lives = [config.gc_ttl_seconds for config in configs]
        known = [ttl for ttl in lives if ttl is not None]
        sizes = [config.range_max_bytes for config in configs]
        return SpanConfig(
            gc_ttl_seconds=max(known) if len(known) == len(lives) else None,
            range_max_bytes=min((size for size in sizes if size is not None), default=None),
        )

    @staticmethod
    def _replace(evaluation: Evaluation, span: Span, config: SpanConfig) -> None:
        """Cuts what was there around `span`, and puts `config` in between."""
        wanted: dict[bytes, _Entry] = {}
        for part, old in _decode(evaluation.scan(ENTRIES)):
            if part.overlaps(span):
                evaluation.delete([KEYSPACE + part.start])
                for left in subtract(part, [span]):
                    wanted[left.start] = _Entry(left.end, old)
        if config != DEFAULT:
            wanted[span.start] = _Entry(span.end, config)
        evaluation.put(
            [KEYSPACE + start for start in wanted], [_encode(entry) for entry in wanted.values()]
        )


def _decode(
    rows: Iterator[tuple[bytes, bytes]] | list[tuple[bytes, bytes]],
) -> Iterator[tuple[Span, SpanConfig]]:
    for key, body in rows:
        entry = _decoder.decode(body)
        yield Span(key[len(KEYSPACE) :], entry.end), entry.config
