"""URIs of what lies on the node: a path under one of its roots, and parameters.

    roots ('/data/mirrors', '/srv/lake')

    delta:///eu/orders?mode=log    /data/mirrors/eu/orders
    delta:////srv/lake/orders      /srv/lake/orders
    delta:////etc/orders           refused: under no root
    delta:///../orders             refused: `..`

The first root is where relative paths start. Symbolic links are followed before the roots are
looked at, so a link that leads out of them is refused, and one that stays inside is only another
name for the same place.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from ...catalog.values.errors import SQLError
from .uri import shown_place

NAME_BYTES_MAX = 255
"""The longest name of a file, by every file system that there is."""
PATH_BYTES_MAX = 3_500
"""The longest path: Linux takes 4,095 bytes, and files of longer names stand in it or beside it."""


@dataclass(frozen=True, slots=True)
class LocalURI:
    """A URI that was read. `path` is the text behind the third slash."""

    scheme: str
    host: str
    path: str
    parameters: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class LocalForm:
    """The form of the URIs of one kind of sink. `what` is the noun for it in errors; `hint` is the
    form."""

    what: str
    hint: str
    parameters: Collection[str] = ()
    hosts: bool = False
    """Whether a host stands before the path."""

    def read(self, uri: str) -> LocalURI:
        """Raises SQLError 22023 for what is no such URI."""
        if any(ord(character) < 0x20 for character in uri):  # urlsplit drops some without a word
            raise self.bad(uri, "a control character is percent-encoded: a tab is %09")
        try:
            parts = urlsplit(uri)
            unquote(uri, errors="strict")
        except UnicodeDecodeError:
            raise self.bad(uri, "what is percent-encoded is no UTF-8") from None
        except ValueError:
            raise self.bad(uri, "it cannot be read") from None
        if not parts.path.startswith("/") or (parts.netloc and not self.hosts):
            raise self.bad(uri, "a path follows three slashes")
        if parts.fragment:
            raise self.bad(uri, "'#' is not part of a path; write %23")
        path = unquote(parts.path[1:])
        return LocalURI(
            parts.scheme.lower(), parts.netloc, path, self._parameters(uri, parts.query)
        )

    def folder(self, uri: str, path: str, roots: Sequence[Path]) -> Path:
        """The folder that the path of a URI names. Raises SQLError: 22023 where there is none, or a
        file is in its place, 42501 for a path under no root."""
        if not path.strip("/"):
            raise self.bad(uri, "the path of a folder is missing")
        found = path_under(roots, path, shown=uri, what=self.what)
        if found.exists() and not found.is_dir():
            raise self.bad(uri, f"{found} is a file, and a folder is needed")
        return found

    def bad(self, uri: str, why: str) -> SQLError:
        return SQLError("22023", f"bad {self.what} {shown_place(uri)!r}: {why}", hint=self.hint)

    def _parameters(self, uri: str, query: str) -> Mapping[str, str]:
        try:
            pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=True) if query else []
        except ValueError:
            raise self.bad(uri, "its parameters are not name=value, separated by '&'") from None
        values: dict[str, str] = {}
        for name, value in pairs:
            if name not in self.parameters:
                raise SQLError(
                    "22023",
                    f"unknown parameter {name!r} in sink URI {shown_place(uri)!r}",
                    hint=f"Known parameters: {', '.join(sorted(self.parameters))}.",
                )
            if name in values:
                raise self.bad(uri, f"parameter {name!r} is given twice")
            values[name] = value
        return values


def unwritable(folder: Path) -> str | None:
    """Why nothing could be written into the folder, or the nearest one above it that is there, if
    so. Makes nothing. What lies in a Delta table VACUUM would remove."""
    for above in folder.parents:
        if (above / "_delta_log").exists():
            return f"folder {folder} lies in the Delta table {above}"
    there = next(each for each in (folder, *folder.parents) if each.exists())
    if not there.is_dir():
        return f"{there} is not a folder"
    if not os.access(there, os.W_OK | os.X_OK):
        return f"folder {there} cannot be written"
    return None


def path_under(roots: Sequence[Path], text: str, *, shown: str, what: str) -> Path:
    """The place that a path names: relative to the first root, or absolute under any.

    Raises SQLError 42501 for a path under none; `shown` and `what` say whose it is.
    """
    if ".." in text.split("/") or "\x00" in text:
        raise SQLError(
            "42501",
            f"{what} path {shown_place(shown)!r} is refused",
            detail="A path may not hold '..'.",
        )
    if any(len(os.fsencode(name)) > NAME_BYTES_MAX for name in text.split("/")):
        raise SQLError(
            "22023",
            f"{what} path {shown_place(shown)!r} is refused",
            detail=f"A name has at most {NAME_BYTES_MAX} bytes.",
        )
    if len(os.fsencode(roots[0] / text)) > PATH_BYTES_MAX:
        raise SQLError(
            "22023",
            f"{what} path {shown_place(shown)!r} is refused",
            detail=f"A path has at most {PATH_BYTES_MAX} bytes.",
        )
    path = (roots[0] / text).resolve()
    if not any(root.resolve() in path.parents for root in roots):
        raise SQLError(
            "42501",
            f"{what} path {shown_place(shown)!r} is outside the mirror roots",
            detail=f"It leads to {path}.",
            hint=f"Roots: {', '.join(map(str, roots))}. --mirror-root adds one.",
        )
    return path
