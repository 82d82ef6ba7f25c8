"""HTTP: receivers that a feed's owner names, and requests to them.

A `WebhookTarget` is an endpoint, also of what is no webhook; `find_address` judges where it is, and
a `PinnedClient` posts to the address that was judged.
"""
