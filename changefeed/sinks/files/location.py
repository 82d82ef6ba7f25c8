"""URIs of files: a folder under a root of this node, and how files are cut.

file:///orders                                 <first root>/orders
file:////srv/changes/orders                    /srv/changes/orders, if that is under a root
nodelocal://self/orders?file_size=64MB         <first root>/orders, in files of about 64 MB
nodelocal://1/orders?partition_format=hourly   the same, of node 1, in a folder for each hour
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..local_uri import LocalForm
from .layout import LAYOUT_PARAMETERS, FilesLayout, read_layout

FORM = LocalForm(
    "file sink",
    "Write file:///folder, relative to the first mirror root, or nodelocal://self/folder.",
    parameters=LAYOUT_PARAMETERS,
    hosts=True,
)


@dataclass(frozen=True, slots=True)
class FilesLocation:
    """A folder, and how files are cut."""

    path: Path
    layout: FilesLayout

    @classmethod
    def read(cls, uri: str, roots: Sequence[Path], *, node_id: int) -> FilesLocation:
        """Raises SQLError: 22023 for what is no such URI, 42501 for a path under no root."""
        given = FORM.read(uri)
        if given.scheme == "file" and given.host:
            raise FORM.bad(uri, "a file URI names no host")
        if given.scheme == "nodelocal" and given.host not in ("self", str(node_id)):
            raise FORM.bad(uri, f"this is node {node_id}: name it, or self")
        path = FORM.folder(uri, given.path, roots)
        return cls(path, read_layout(given.parameters, lambda why: FORM.bad(uri, why)))
