"""Delivery: what stands between a feed and a receiver of messages.

A receiver is a small class, a `MessageSender`, that knows how to send one batch. `MessageSink` is
the sink around it: it encodes changes, gathers messages into batches, has several requests under
way, sends again what failed, and tells the feed what was acknowledged.

Promises, whatever the receiver does:

    order         of one key there is never more than one batch under way, and what is sent again
                  goes before what is newer
    durability    a flush returns when the receiver has acknowledged all that was emitted before it
    memory        encoded messages that wait for an acknowledgement are bounded in bytes; changes
                  that are not encoded yet stay charged to the feed's budget

Never knows: protocols of receivers, sockets, URIs.
"""

from .sender import BatchRefused, Message, Messages
from .sink import MessageSink

__all__ = ["BatchRefused", "Message", "MessageSink", "Messages"]
