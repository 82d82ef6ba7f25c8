"""Webhooks: each batch of changes is the body of one HTTPS request.

    POST /hooks/orders    {"payload": [{"after": …, "key": [1], "topic": "orders"}, …], "length": 2}

A request is answered with any 2xx, or its batch is not delivered. The receiver's name is resolved
once for each attempt of a feed, and requests go to the address that was found and judged then.
"""

from .kind import SCHEMES, WebhookKind

__all__ = ["SCHEMES", "WebhookKind"]
