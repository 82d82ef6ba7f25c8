"""What an `iceberg://` URI names: a folder under a root of the node, with a catalog and its tables.

iceberg:///lake                  <first root>/lake, whose tables are default.NAME
iceberg:///lake?namespace=shop   shop.NAME
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from ....catalog.values.errors import SQLError
from ..locations import NAME_BYTES_MAX, path_under
from ..uri import shown_place

SCHEME = "iceberg"
CATALOG = "catalog.db"
_FORM = "Write iceberg:///folder, relative to the first mirror root."


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
            if not name or "." in name or "/" in name or len(name.encode()) > NAME_BYTES_MAX:
                raise SQLError("0A000", f'no Iceberg table can have the name of table "{name}"')
        if len(set(tables)) < len(tables):
            raise SQLError(
                "0A000", "two tables of the feed have one name: give each a changefeed of its own"
            )
        return [*tables]


def iceberg_target(uri: str, roots: Sequence[Path]) -> IcebergTarget:
    """The target of a URI. Raises SQLError: 22023 for what is no such URI, 42501 for a path under
    no root, 0A000 for a mirror."""
    parts = urlsplit(uri)
    if parts.netloc or not parts.path.startswith("/") or not parts.path.strip("/"):
        raise _bad(uri, "the path of a folder follows three slashes")
    if parts.fragment:
        raise _bad(uri, "'#' is not part of a path; write %23")
    given = parse_qsl(parts.query, keep_blank_values=True)
    values = dict(given)
    known = values.keys() <= {"mode", "namespace"} and len(values) == len(given)
    if not known or bool(parts.query) is not bool(given):
        raise _bad(uri, "its parameters are mode and namespace")
    if values.get("mode") == "mirror":
        raise SQLError(
            "0A000",
            "a mirror in Iceberg tables is not supported",
            detail="pyiceberg's upsert deletes no rows, and a mirror follows deletions.",
            hint="Without mode=mirror every change is appended; delta:// has mirrors.",
        )
    if values.get("mode", "log") != "log":
        raise _bad(uri, "mode is log")
    namespace = values.get("namespace", "default")
    if not namespace.isidentifier():
        raise _bad(uri, "a namespace is a name of letters, digits and underscores")
    path = path_under(roots, unquote(parts.path[1:]), shown=uri, what="Iceberg catalog")
    if path.exists() and not path.is_dir():
        raise _bad(uri, f"{path} is a file, and a catalog is in a folder")
    return IcebergTarget(path, namespace)


def _bad(uri: str, why: str) -> SQLError:
    return SQLError("22023", f"bad Iceberg catalog {shown_place(uri)!r}: {why}", hint=_FORM)
