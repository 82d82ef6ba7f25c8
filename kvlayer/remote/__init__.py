"""The store of another process.

What lives here: a client with the face of `Store` (`access.StoreAccess`), the messages that it and
the server exchange, and the channels that carry them. The server's side is `api.rpc`.

It promises what the store promises. Timestamps are drawn there; transactions live there and end
with the connection; a commit is checked there, against everything that it was evaluated from. What
a lost connection leaves unknown is said to be (`OutcomeUnknown`), and never tried again by itself.

It must never know what keys and values mean, or how a server is found and trusted.
"""

from .channel import ChannelBroken, ChannelRefused
from .store import RemoteStore

__all__ = ["ChannelBroken", "ChannelRefused", "RemoteStore"]
