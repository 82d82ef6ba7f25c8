"""The environment of a process that a server starts: built, and not inherited, for what stands in a
server's may be secret."""

from __future__ import annotations

from collections.abc import Mapping

INHERITED = (
    "PATH",
    "HOME",
    "PYTHONPATH",
    "LD_LIBRARY_PATH",
    "TMPDIR",
    "LANG",
    "LC_ALL",
    "TZ",
)
"""Variables that each such process inherits: where programs and files are, and how to write."""


def child_environment(own: Mapping[str, str], *more: str) -> dict[str, str]:
    """Returns the variables of `own` that are in `INHERITED` or in `more`."""
    return {name: own[name] for name in (*INHERITED, *more) if name in own}
