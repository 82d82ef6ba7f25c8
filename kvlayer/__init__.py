"""The key-value layer: a transactional store of bytes, and the feeds of what it commits.

What lives here: the clock, the log that is the truth, engines, versions and intents, transactions,
ranges and range feeds. It promises serializable transactions, that nothing leaves before it is
durable, and the feed contract of `events`. It must never know tables, rows, columns or SQL: a key
is bytes, and what a value means is its writer's business.
"""
