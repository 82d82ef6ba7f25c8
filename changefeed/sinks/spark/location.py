"""`spark+…` URIs: a folder for the lake, its format, and the cluster that writes it.

spark+parquet:///orders?master=local[2]      <first root>/orders, by two threads here
spark+parquet:////srv/lake/orders            /srv/lake/orders, if that is under a root
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..local_uri import LocalForm

SCHEME_PREFIX = "spark+"
FORMATS = ("parquet",)
DEFAULT_MASTER = "local[2]"
_MASTERS = ("local", "local[", "spark://")
FORM = LocalForm(
    "lake location",
    "Write spark+parquet:///folder, or spark+parquet:///folder?master=spark://host:7077.",
    parameters=("master",),
)


@dataclass(frozen=True, slots=True)
class LakeLocation:
    """A lake's folder, the format of its files, and Spark's master."""

    path: Path
    format: str
    master: str

    @classmethod
    def read(cls, uri: str, roots: Sequence[Path]) -> LakeLocation:
        """Raises SQLError: 22023 for what is no such URI, 42501 for a path under no root."""
        given = FORM.read(uri)
        master = given.parameters.get("master", DEFAULT_MASTER)
        if master != "local" and not master.startswith(_MASTERS[1:]):
            raise FORM.bad(uri, f"master {master!r} is none: local, local[n] or spark://host:port")
        format = given.scheme.removeprefix(SCHEME_PREFIX)
        return cls(FORM.folder(uri, given.path, roots), format, master)
