"""What a `delta://` URI names: a Delta table, or a folder of them, under a root of the node.

delta:///orders                the Delta table <first root>/orders
delta:///lake/                 in the folder <first root>/lake a Delta table for each of the feed's
delta:////srv/lake/orders      the Delta table /srv/lake/orders, if that is under a root
delta:///orders?mode=mirror    the table's rows as they are, where `mode=log` has every change
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from ....catalog.values.errors import SQLError
from ..locations import NAME_BYTES_MAX, Mode, path_under
from ..uri import shown_place

SCHEME = "delta"
MODES = (Mode.LOG, Mode.MIRROR)
_FORM = "Write delta:///table or delta:///folder/, relative to the first mirror root."


@dataclass(frozen=True, slots=True)
class DeltaTarget:
    """The folder of a Delta table or, if `several`, of Delta tables, and what they hold."""

    path: Path
    several: bool
    mode: Mode

    def folder(self, table_name: str) -> Path:
        """The folder of a table's Delta table. Raises SQLError 0A000 where no folder can have the
        table's name."""
        if not self.several:
            return self.path
        taken = table_name in (".", "..") or table_name.startswith("_")
        if taken or "/" in table_name or len(table_name.encode()) > NAME_BYTES_MAX:
            raise SQLError(
                "0A000",
                f'no folder of a Delta table can have the name of table "{table_name}"',
                hint="Create a changefeed of that table alone: its URI names the folder.",
            )
        return self.path / table_name

    def folders(self, table_names: Iterable[str]) -> list[Path]:
        """The folders of a feed's tables. Raises SQLError 0A000 where they need others."""
        names = [*table_names]
        if len(names) > 1 and not self.several:
            raise SQLError(
                "0A000",
                "a Delta table takes one table",
                hint="A slash at the end of the path names a folder with a Delta table for each.",
            )
        found = [self.folder(name) for name in names]
        if len({str(path).casefold() for path in found}) < len(found):
            raise SQLError(
                "0A000", "two tables of the feed have one name: give each a changefeed of its own"
            )
        return found


def delta_target(uri: str, roots: Sequence[Path]) -> DeltaTarget:
    """The target of a URI. Raises SQLError: 22023 for what is no such URI, 42501 for a path under
    no root."""
    parts = urlsplit(uri)
    if parts.netloc or not parts.path.startswith("/") or not parts.path.strip("/"):
        raise _bad(uri, "the path of a folder follows three slashes")
    if parts.fragment:
        raise _bad(uri, "'#' is not part of a path; write %23")
    text = unquote(parts.path[1:])
    path = path_under(roots, text, shown=uri, what="Delta table")
    if path.exists() and not path.is_dir():
        raise _bad(uri, f"{path} is a file, and a Delta table is a folder")
    return DeltaTarget(path, text.endswith("/"), _mode(uri, parts.query))


def _mode(uri: str, query: str) -> Mode:
    given = parse_qsl(query, keep_blank_values=True)
    if query and [name for name, _ in given] != ["mode"]:
        raise _bad(uri, "it takes one parameter, mode")
    for _, value in given:
        if value not in [mode.value for mode in MODES]:
            raise _bad(uri, f"mode is {' or '.join(mode.value for mode in MODES)}")
        return Mode(value)
    return Mode.LOG


def _bad(uri: str, why: str) -> SQLError:
    return SQLError("22023", f"bad Delta table {shown_place(uri)!r}: {why}", hint=_FORM)
