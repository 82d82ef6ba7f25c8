"""What a URI of files names: a folder under a root of this node, and how files are cut.

file:///orders                                 <first root>/orders
file:////srv/changes/orders                    /srv/changes/orders, if that is under a root
nodelocal://self/orders?file_size=64MB         <first root>/orders, in files of about 64 MB
nodelocal://1/orders?partition_format=hourly   the same, of node 1, in a folder for each hour
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from ....catalog.values.errors import SQLError
from ..locations import path_under
from ..uri import shown_place
from .layout import LAYOUT_PARAMETERS, FilesLayout, read_layout

_FORM = "Write file:///folder, relative to the first mirror root, or nodelocal://self/folder."


@dataclass(frozen=True, slots=True)
class FilesLocation:
    """A folder, and how files are cut."""

    path: Path
    layout: FilesLayout

    @classmethod
    def read(cls, uri: str, roots: Sequence[Path], *, node_id: int) -> FilesLocation:
        """Raises SQLError: 22023 for what is no such URI, 42501 for a path under no root."""
        parts = urlsplit(uri)
        _check_host(uri, parts.scheme.lower(), parts.netloc, node_id)
        if not parts.path.startswith("/") or parts.fragment:
            raise _bad(uri, "a path follows three slashes")
        text = unquote(parts.path[1:])
        if not text.strip("/"):
            raise _bad(uri, "the path of a folder is missing")
        path = path_under(roots, text, shown=uri, what="file sink")
        if path.exists() and not path.is_dir():
            raise _bad(uri, f"{path} is a file, and a folder is needed")
        given = _parameters(uri, parts.query)
        return cls(path, read_layout(given, lambda why: _bad(uri, why)))


def _check_host(uri: str, scheme: str, host: str, node_id: int) -> None:
    if scheme == "file" and host:
        raise _bad(uri, "a file URI names no host")
    if scheme == "nodelocal" and host not in ("self", str(node_id)):
        raise _bad(uri, f"this is node {node_id}: name it, or self")


def _parameters(uri: str, query: str) -> dict[str, str]:
    given: dict[str, str] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name not in LAYOUT_PARAMETERS:
            raise SQLError(
                "22023",
                f"unknown parameter {name!r} in sink URI {shown_place(uri)!r}",
                hint=f"Known parameters: {', '.join(LAYOUT_PARAMETERS)}.",
            )
        if name in given:
            raise _bad(uri, f"parameter {name!r} is given twice")
        given[name] = value
    return given


def _bad(uri: str, why: str) -> SQLError:
    return SQLError("22023", f"bad file sink {shown_place(uri)!r}: {why}", hint=_FORM)
