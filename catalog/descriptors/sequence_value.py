"""The stored value of a sequence: the value handed out last, and whether there was one.

A sequence that was never drawn from has none: its value is where it starts, and not handed out.
"""

from __future__ import annotations

import msgspec

encode_value = msgspec.msgpack.Encoder().encode
"""Encodes `(last, called)`."""

decode_value = msgspec.msgpack.Decoder(tuple[int, bool]).decode
"""Raises msgspec.DecodeError for what is no such value."""
