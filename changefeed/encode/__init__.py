"""Messages: decoded changes as the bytes that consumers read.

An *encoder* belongs to a feed's options and turns a `ChangeBatch` into one message a change, in the
batch's order: a key and a value. Shapes are CockroachDB's, so that its consumers work unchanged.

`JSONEncoder` is the `wrapped` envelope in JSON.

Never knows: who proved the schema, what a sink does with messages, progress.
"""

from .json import JSONEncoder, Message

__all__ = ["JSONEncoder", "Message"]
