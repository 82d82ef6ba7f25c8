"""Messages that say where a transaction begins and ends, for feeds WITH transactions.

    {"transaction":{"id":"17….0000000001","status":"BEGIN"}}
    {"transaction":{"counts":{"orders":2,"refunds":1},"id":"17….0000000001","status":"END"}}

The commit timestamp is the transaction's identity, and `counts` has a number for each topic. They
stand under `__crdb__` wherever a resolved message does.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from ...kvlayer.clock import Timestamp, format_timestamp
from ..contract.message_form import Envelope
from .json import METADATA_FIELD


def begin_message(envelope: Envelope, at: Timestamp) -> bytes:
    return _message(envelope, {"id": format_timestamp(at), "status": "BEGIN"})


def end_message(envelope: Envelope, at: Timestamp, counts: Mapping[str, int]) -> bytes:
    told = {"counts": dict(counts), "id": format_timestamp(at), "status": "END"}
    return _message(envelope, told)


def _message(envelope: Envelope, told: Mapping[str, object]) -> bytes:
    message: Mapping[str, object] = {"transaction": told}
    if envelope is not Envelope.WRAPPED:
        message = {METADATA_FIELD: message}
    return msgspec.json.encode(message, order="sorted")
