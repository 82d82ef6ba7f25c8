"""What a `spark+…` URI names: a folder for the lake, its format, and the cluster that writes it.

spark+parquet:///orders?master=local[2]      <first root>/orders, by two threads here
spark+parquet:////srv/lake/orders            /srv/lake/orders, if that is under a root
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from ....catalog.values.errors import SQLError
from ..locations import path_under
from ..uri import shown_place

SCHEME_PREFIX = "spark+"
FORMATS = ("parquet",)
DEFAULT_MASTER = "local[2]"
_MASTERS = ("local", "local[", "spark://")
_FORM = "Write spark+parquet:///folder, or spark+parquet:///folder?master=spark://host:7077."


@dataclass(frozen=True, slots=True)
class LakeLocation:
    """A lake's folder, the format of its files, and Spark's master."""

    path: Path
    format: str
    master: str

    @classmethod
    def read(cls, uri: str, roots: Sequence[Path]) -> LakeLocation:
        """Raises SQLError: 22023 for what is no such URI, 42501 for a path under no root."""
        parts = urlsplit(uri)
        format = parts.scheme.lower().removeprefix(SCHEME_PREFIX)
        if parts.netloc or not parts.path.startswith("/") or parts.fragment:
            raise _bad(uri, "a path follows three slashes")
        path = path_under(roots, unquote(parts.path[1:]), shown=uri, what="lake")
        if path.exists() and not path.is_dir():
            raise _bad(uri, f"{path} is a file, and a lake is a folder")
        return cls(path, format, _master(uri, parts.query))


def _master(uri: str, query: str) -> str:
    parameters = dict(parse_qsl(query, keep_blank_values=True)) if query else {}
    unknown = sorted(set(parameters) - {"master"})
    if unknown:
        raise SQLError(
            "22023",
            f"unknown parameter {unknown[0]!r} in sink URI {shown_place(uri)!r}",
            hint="Known parameters: master.",
        )
    master = parameters.get("master", DEFAULT_MASTER)
    if master != "local" and not master.startswith(_MASTERS[1:]):
        raise _bad(uri, f"master {master!r} is none: local, local[n] or spark://host:port")
    return master


def _bad(uri: str, why: str) -> SQLError:
    return SQLError("22023", f"bad lake location {shown_place(uri)!r}: {why}", hint=_FORM)
