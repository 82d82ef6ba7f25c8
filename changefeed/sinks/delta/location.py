"""What a `delta://` URI names: the folder of a Delta table under a root of the node.

delta:///orders             <first root>/orders
delta:////srv/lake/orders   /srv/lake/orders, if that is under a root
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from ....catalog.values.errors import SQLError
from ..locations import path_under

SCHEME = "delta"
_FORM = "Write delta:///folder, relative to the first mirror root."


def delta_path(uri: str, roots: Sequence[Path]) -> Path:
    """The table's folder. Raises SQLError: 22023 for what is no such URI, 42501 for a path under no
    root."""
    parts = urlsplit(uri)
    if parts.netloc or not parts.path.startswith("/") or not parts.path.strip("/"):
        raise _bad(uri, "the path of a folder follows three slashes")
    if parts.query or parts.fragment:
        raise _bad(uri, "it takes no parameters")
    path = path_under(roots, unquote(parts.path[1:]), shown=uri, what="Delta table")
    if path.exists() and not path.is_dir():
        raise _bad(uri, f"{path} is a file, and a Delta table is a folder")
    return path


def _bad(uri: str, why: str) -> SQLError:
    return SQLError("22023", f"bad Delta table {uri!r}: {why}", hint=_FORM)
