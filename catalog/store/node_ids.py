"""Node ids: a number for each node that ever used a store, given out by the store."""

from __future__ import annotations

from ...kvlayer.access import Evaluation, StoreAccess
from ..descriptors.system_tables import ID_SEQUENCE
from ..rows.row_codec import codec_for

FIRST_NODE_ID = 1
"""The process that serves the store is its first node."""

_NODE_ID_SEQUENCE = "node_id"
_sequence = codec_for(ID_SEQUENCE)


async def allocate_node_id(store: StoreAccess) -> int:
    """An id that no other node of the store has had."""
    key = _sequence.encode_key((_NODE_ID_SEQUENCE,))

    def evaluate(evaluation: Evaluation) -> int:
        body = evaluation.get(key)
        found = FIRST_NODE_ID + 1 if body is None else _sequence.decode_row(key, body)[1]
        assert isinstance(found, int), found
        row = _sequence.encode_row((_NODE_ID_SEQUENCE, found + 1))
        evaluation.put([row[0]], [row[1]])
        return found

    allocated, _ = await store.one_phase(evaluate)
    return allocated
