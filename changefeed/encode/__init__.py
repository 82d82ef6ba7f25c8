"""Messages: decoded changes as the bytes that consumers read.

An *encoder* belongs to a feed's options and turns a `ChangeBatch` into an `EncodedBatch`: a topic,
and a key and a value for each change, in the batch's order. Shapes are CockroachDB's, so that its
consumers work unchanged. `encoder_for` chooses the encoder, `Topics` names topics.

Never knows: who proved the schema, what a sink does with messages, progress.
"""

from .encoders import encoder_for, line_encoder_for
from .enriched import FeedOrigin
from .protocol import EncodedBatch, Encoder, LineEncoder, RegisteredSchema, RegisteringEncoder
from .schema_messages import schema_message
from .topics import Topics
from .transaction_messages import begin_message, end_message

__all__ = [
    "EncodedBatch",
    "Encoder",
    "FeedOrigin",
    "LineEncoder",
    "RegisteredSchema",
    "RegisteringEncoder",
    "Topics",
    "begin_message",
    "encoder_for",
    "end_message",
    "line_encoder_for",
    "schema_message",
]
