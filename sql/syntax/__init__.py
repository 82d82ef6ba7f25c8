"""Every statement as a dataclass: what the parser returns, and the grammar that it is read from.

It promises that a statement holds what its text says and nothing of what it means. It must never
know a catalog.
"""
