"""What a URI of files names: a folder under a root of this node, and how files are cut.

file:///orders                                 <first root>/orders
file:////srv/changes/orders                    /srv/changes/orders, if that is under a root
nodelocal://self/orders?file_size=64MB         <first root>/orders, in files of about 64 MB
nodelocal://1/orders?partition_format=hourly   the same, of node 1, in a folder for each hour
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from ....catalog.values.errors import SQLError
from ..locations import path_under

FILE_BYTES = 16 << 20
"""CockroachDB's default for `file_size`."""

_UNITS = {
    "b": 1,
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
    "kib": 1 << 10,
    "mib": 1 << 20,
    "gib": 1 << 30,
}
_SIZE = re.compile(rf"(\d+)\s*({'|'.join(_UNITS)})?")

PARAMETERS = ("file_size", "partition_format", "topic_prefix")
_FORM = "Write file:///folder, relative to the first mirror root, or nodelocal://self/folder."


class PartitionFormat(Enum):
    """Into which folders files go, by the day or hour (UTC) that their names begin with."""

    DAILY = "daily"
    HOURLY = "hourly"
    FLAT = "flat"  # none


@dataclass(frozen=True, slots=True)
class FilesLocation:
    """A folder. A file is ended when it has `file_bytes` bytes or more."""

    path: Path
    file_bytes: int = FILE_BYTES
    partition_format: PartitionFormat = PartitionFormat.DAILY
    topic_prefix: str = ""

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
        return cls(
            path,
            _file_bytes(uri, given.get("file_size")),
            _partition_format(uri, given.get("partition_format")),
            given.get("topic_prefix", ""),
        )


def _check_host(uri: str, scheme: str, host: str, node_id: int) -> None:
    if scheme == "file" and host:
        raise _bad(uri, "a file URI names no host")
    if scheme == "nodelocal" and host not in ("self", str(node_id)):
        raise _bad(uri, f"this is node {node_id}: name it, or self")


def _parameters(uri: str, query: str) -> dict[str, str]:
    given: dict[str, str] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name not in PARAMETERS:
            raise SQLError(
                "22023",
                f"unknown parameter {name!r} in sink URI {uri!r}",
                hint=f"Known parameters: {', '.join(PARAMETERS)}.",
            )
        if name in given:
            raise _bad(uri, f"parameter {name!r} is given twice")
        given[name] = value
    return given


def _file_bytes(uri: str, text: str | None) -> int:
    if text is None:
        return FILE_BYTES
    found = _SIZE.fullmatch(text.strip().lower())
    if found is None or not int(found[1]):
        raise _bad(uri, f"file_size is a number of bytes such as 64MB or 64MiB, not {text!r}")
    return int(found[1]) * _UNITS[found[2] or "b"]


def _partition_format(uri: str, text: str | None) -> PartitionFormat:
    if text is None:
        return PartitionFormat.DAILY
    try:
        return PartitionFormat(text.lower())
    except ValueError:
        known = ", ".join(each.value for each in PartitionFormat)
        raise _bad(uri, f"partition_format is one of {known}, not {text!r}") from None


def _bad(uri: str, why: str) -> SQLError:
    return SQLError("22023", f"bad file sink {uri!r}: {why}", hint=_FORM)
