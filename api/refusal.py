"""Why a node does not start."""

from __future__ import annotations

from ..error import Error


class NodeRefused(Error):
    """The node cannot start as it was asked to; the message says why and what to do."""
