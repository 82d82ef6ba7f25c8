"""Why a node does not start."""

from __future__ import annotations


class NodeRefused(Exception):
    """The node cannot start as it was asked to; the message says why and what to do."""
