"""The choice of an encoder by the options of a feed."""

from __future__ import annotations

from ..contract.message_form import Format
from ..contract.options import ChangefeedOptions
from .csv import CSVEncoder
from .enriched import FeedOrigin
from .json import JSONEncoder
from .protocol import Encoder, LineEncoder
from .topics import Topics


def encoder_for(
    options: ChangefeedOptions, topics: Topics, origin: FeedOrigin | None = None
) -> Encoder:
    """The encoder of messages for a feed. A sink refuses formats that are not of messages before a
    feed is created (`SinkKind.check_options`). The enriched envelope needs the feed's `origin`."""
    if options.format is Format.AVRO:
        from .avro import AvroEncoder  # an extra

        return AvroEncoder(options, topics)
    return line_encoder_for(options, topics, origin)


def line_encoder_for(
    options: ChangefeedOptions, topics: Topics, origin: FeedOrigin | None = None
) -> LineEncoder:
    """The encoder of a feed whose messages are texts: in CSV or JSON."""
    if options.format is Format.CSV:
        return CSVEncoder(topics)
    assert options.format is Format.JSON, options.format
    return JSONEncoder(options, topics, origin)
