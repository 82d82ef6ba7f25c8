"""The events of a range feed as lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import assert_never

from ...catalog.store.key_names import KeyNames
from ...kvlayer.clock import format_timestamp
from ...kvlayer.events import Checkpoint, DeleteRange, Event, SteadyState, ValueBatch
from .lines import Line, shown_value


class FeedLines:
    """Turns events into lines, values by the descriptors that were known when the feed began."""

    def __init__(self, names: KeyNames) -> None:
        self._names = names

    def lines(self, events: Sequence[Event]) -> Iterator[Line]:
        for event in events:
            match event:
                case ValueBatch():
                    yield from self._values(event)
                case DeleteRange(span=span, timestamp=ts):
                    yield {
                        "event": "delete range",
                        "span": self._names.span(span),
                        "timestamp": format_timestamp(ts),
                    }
                case Checkpoint(spans=spans, resolved=resolved):
                    yield {
                        "event": "checkpoint",
                        "spans": [self._names.span(span) for span in spans],
                        "resolved": format_timestamp(resolved),
                    }
                case SteadyState(span=span):
                    yield {"event": "steady", "span": self._names.span(span)}
                case _:
                    assert_never(event)

    def _values(self, batch: ValueBatch) -> Iterator[Line]:
        names = self._names
        for place, (key, body) in enumerate(zip(batch.keys, batch.values, strict=True)):
            line: Line = {
                "event": "value",
                "key": names.key(key),
                "timestamp": format_timestamp(batch.timestamps[place]),
                "value": shown_value(names, key, body),
            }
            if batch.previous is not None:
                line["previous"] = shown_value(names, key, batch.previous[place])
            yield line
