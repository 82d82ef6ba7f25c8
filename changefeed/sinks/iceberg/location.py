"""`iceberg://` URIs: a folder under a root of the node, with a catalog and its tables.

iceberg:///lake                  <first root>/lake, whose tables are default.NAME
iceberg:///lake?namespace=shop   shop.NAME
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ....catalog.values.errors import SQLError
from ..local_uri import NAME_BYTES_MAX, LocalForm

SCHEME = "iceberg"
CATALOG = "catalog.db"
_CUT = re.compile(r"[#?\x00-\x1f\x7f]")
"""pyiceberg reads a location as a URL: it ends at the first two, and the others are left out."""

_ESCAPE = re.compile(r"%[0-9A-Fa-f]{2}")
"""SQLAlchemy reads it as a letter in the way to the catalog."""

FORM = LocalForm(
    "Iceberg catalog",
    "Write iceberg:///folder, relative to the first mirror root.",
    parameters=("mode", "namespace"),
)


@dataclass(frozen=True, slots=True)
class IcebergTarget:
    """A folder with a catalog, and a namespace in it."""

    path: Path
    namespace: str

    @property
    def catalog(self) -> Path:
        return self.path / CATALOG

    def names(self, tables: Sequence[str]) -> list[str]:
        """The names of a feed's tables. Raises SQLError 0A000 where Iceberg can have none such."""
        for name in tables:
            unfit = "." in name or "/" in name or _CUT.search(name)
            if not name or unfit or len(name.encode()) > NAME_BYTES_MAX:
                raise SQLError("0A000", f'no Iceberg table can have the name of table "{name}"')
        if len(set(tables)) < len(tables):
            raise SQLError(
                "0A000", "two tables of the feed have one name: give each a changefeed of its own"
            )
        return [*tables]


def iceberg_target(uri: str, roots: Sequence[Path]) -> IcebergTarget:
    """The target of a URI. Raises SQLError: 22023 for what is no such URI, 42501 for a path under
    no root, 0A000 for a mirror."""
    given = FORM.read(uri)
    values = given.parameters
    if values.get("mode") == "mirror":
        raise SQLError(
            "0A000",
            "a mirror in Iceberg tables is not supported",
            detail="pyiceberg's upsert deletes no rows, and a mirror follows deletions.",
            hint="Without mode=mirror every change is appended; delta:// has mirrors.",
        )
    if values.get("mode", "log") != "log":
        raise FORM.bad(uri, "mode is log")
    namespace = values.get("namespace", "default")
    if not namespace.isidentifier():
        raise FORM.bad(uri, "a namespace is a name of letters, digits and underscores")
    path = FORM.folder(uri, given.path, roots)
    if _CUT.search(str(path)) or _ESCAPE.search(str(path)):
        raise FORM.bad(uri, f"no '#', '?', %41 or control character may be in the way to {path}")
    return IcebergTarget(path, namespace)
