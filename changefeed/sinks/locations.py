"""The files of mirrors: those that a `duckdb:///` URI may name, and their contents.

A mirror is a file under one of the node's roots (`local_uri`), the first of which is its own.

    duckdb:///eu/sales.duckdb                 the rows of the feed's tables
    duckdb:///sales.duckdb?mode=log           their changes
    duckdb:///sales.duckdb?apply=transaction  as of resolved timestamps alone
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from urllib.parse import parse_qsl, quote, urlsplit

from ...catalog.values.errors import SQLError
from .local_uri import NAME_BYTES_MAX, LocalForm, path_under
from .uri import shown_place

SCHEME = "duckdb"
PARAMETERS = {
    "apply": ("row", "transaction"),  # each batch as it comes, or up to resolved timestamps
    "mode": ("mirror", "log", "both"),  # hold the table's rows as they are, or every change
    "schema": None,  # the schema of the mirror tables, `main` where none is named
    "table": None,  # the mirror table's name, where it is not the source's
}
"""The parameters of a URI, and the values that each takes (None: any)."""

FORM = LocalForm(
    "mirror location",
    "Write duckdb:///file.duckdb, relative to the first mirror root, or "
    "duckdb:////absolute/file.duckdb under one of them.",
    parameters=PARAMETERS,
)

OWN_SUFFIXES = frozenset({".wal", ".tmp", ".published"})
"""The write-ahead log that DuckDB keeps beside `m.duckdb`, its temporary files, and the published
copy: a mirror of such a name would be read as part of the other one, or write over it."""

MAIN_SCHEMA = "main"
OWN_SCHEMA = "_tailrace"
"""Where a mirror file keeps rows and progress."""

SCHEMAS_REFUSED = frozenset({OWN_SCHEMA, "information_schema", "pg_catalog", "system", "temp"})
"""DuckDB has its own things under the others."""


class Apply(Enum):
    """When a mirror shows changes."""

    ROW = "row"  # as they come: everything up to the resolved timestamp, and later single rows
    TRANSACTION = "transaction"  # everything up to the resolved timestamp and nothing above it


class Mode(Enum):
    """The forms of a table in a mirror."""

    MIRROR = "mirror"  # its rows
    LOG = "log"  # a row for each change
    BOTH = "both"

    @property
    def holds_rows(self) -> bool:
        return self is not Mode.LOG

    @property
    def holds_changes(self) -> bool:
        return self is not Mode.MIRROR


@dataclass(frozen=True, slots=True)
class MirrorTarget:
    """The target of a sink URI: a file, the mirror table's name where the URI gives one, when
    changes are shown, what is held of them, and in which schema."""

    path: Path
    table: str | None = None
    apply: Apply = Apply.ROW
    mode: Mode = Mode.MIRROR
    schema: str = MAIN_SCHEMA


class MirrorLocations:
    """The roots of one node. Raises SQLError on whatever is not under one of them."""

    def __init__(self, roots: Sequence[Path]) -> None:
        assert roots, "a node has at least its own mirror root"
        self.roots = tuple(Path(root).absolute() for root in roots)

    def target(self, uri: str) -> MirrorTarget:
        """The target of a sink URI. Raises SQLError 22023, or 42501 for a path outside."""
        given = FORM.read(uri)
        if given.scheme != SCHEME:
            raise FORM.bad(uri, f"its scheme is {SCHEME}")
        values = _checked(uri, given.parameters)
        mode = Mode(values.get("mode", Mode.MIRROR.value))
        if mode is Mode.LOG and values.get("apply") == Apply.TRANSACTION.value:
            raise FORM.bad(
                uri, "mode=log and apply=transaction exclude each other: the rows of a log say when"
            )
        path = self.path(given.path, shown=uri)
        return MirrorTarget(
            path,
            values.get("table"),
            Apply(values.get("apply", Apply.ROW.value)),
            mode,
            _schema(values.get("schema", MAIN_SCHEMA), path),
        )

    def path(self, text: str, *, shown: str | None = None) -> Path:
        """The file that a path names: relative to the first root, or absolute under any."""
        shown = shown or text
        if not text or text.endswith("/"):
            raise FORM.bad(shown, "the path of a file is missing")
        if "\x00" in text:
            raise FORM.bad(shown, "a path has no NUL")
        path = path_under(self.roots, text, shown=shown, what="mirror")
        if path.is_dir():
            raise FORM.bad(shown, "the path is a folder")
        suffixes = (*path.suffixes, path.parent.suffix)
        if OWN_SUFFIXES & {suffix.casefold() for suffix in suffixes}:
            raise FORM.bad(shown, "DuckDB keeps a mirror's own files under such names")
        return path

    def read_target(self, location: str) -> Path:
        """The file behind a URI or a bare path, for somebody who wants to read it."""
        if location.lower().startswith(SCHEME + ":"):
            return self.target(location).path
        return self.path(location)


def _checked(uri: str, values: Mapping[str, str]) -> Mapping[str, str]:
    """The parameters, if each has a value that it takes."""
    for name, value in values.items():
        known = PARAMETERS[name]
        if known is not None and value not in known:
            raise SQLError(
                "22023",
                f"sink parameter {name} takes no {value!r}",
                hint=f"Values of {name}: {', '.join(known)}.",
            )
        if not value or "\x00" in value:
            raise FORM.bad(uri, f"parameter {name!r} has no value")
    return values


def _schema(name: str, path: Path) -> str:
    """The schema, if a mirror may have it. Raises SQLError 22023."""
    folded, catalog = name.casefold(), path.name.split(".")[0]
    why = None
    if folded in SCHEMAS_REFUSED:
        why = f"DuckDB or the mirror itself has that one ({', '.join(sorted(SCHEMAS_REFUSED))})"
    elif folded == catalog.casefold():
        why = (
            f"whoever opens {path.name} has its tables under the catalog {catalog}, and DuckDB "
            f"could not tell {catalog}.t of the one from that of the other"
        )
    elif len(name.encode()) > NAME_BYTES_MAX or not name.isprintable():
        why = f"a name has at most {NAME_BYTES_MAX} bytes, and no control characters"
    if why is not None:
        raise SQLError(
            "22023",
            f'a mirror cannot have its tables in schema "{shown_place(name)}"',
            detail=f"Reason: {why}.",
            hint="Choose another schema, or none: the tables are in main then.",
        )
    return MAIN_SCHEMA if folded == MAIN_SCHEMA else name


def in_schema(uri: str, schema: str) -> str:
    """The URI of a mirror whose tables are in `schema`, unless it says so already."""
    parts = urlsplit(uri)
    if ("schema", schema) in parse_qsl(parts.query):
        return uri
    return f"{uri}{'&' if parts.query else '?'}schema={quote(schema, safe='')}"
