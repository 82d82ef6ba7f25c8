"""Secrets of a store as a whole: made once, and the same on every node and after each restart.

Whoever may read system tables may read them, as they may read the users' verifiers.
"""

from __future__ import annotations

from ...kvlayer.access import StoreAccess
from ...kvlayer.txn import Evaluation
from ..descriptors.system_tables import SECRETS
from ..rows.row_codec import codec_for

SECRET_BYTES = 32

_secrets = codec_for(SECRETS)


async def store_secret(store: StoreAccess, name: str) -> bytes:
    """The secret of that name; it is made where there is none yet."""
    made = store.random.randbytes(SECRET_BYTES)

    def evaluate(evaluation: Evaluation) -> bytes:
        key, body = _secrets.encode_row((name, made))
        known = evaluation.get(key)
        if known is None:
            evaluation.put([key], [body])
            return made
        value = _secrets.decode_row(key, known)[1]
        assert isinstance(value, bytes), name
        return value

    secret, _ = await store.one_phase(evaluate)
    return secret
