"""`delta://` URIs: a Delta table, or a folder of them, under a root of the node.

delta:///orders                the Delta table <first root>/orders
delta:///lake/                 in the folder <first root>/lake a Delta table for each of the feed's
delta:////srv/lake/orders      the Delta table /srv/lake/orders, if that is under a root
delta:///orders?mode=mirror    the table's rows as they are, where `mode=log` has every change
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ....catalog.values.errors import SQLError
from ..local_uri import NAME_BYTES_MAX, LocalForm
from ..locations import Mode

SCHEME = "delta"
_UNFIT = re.compile(r"[/\\\x00-\x1f\x7f]|%[0-9A-Fa-f]{2}")
"""delta-rs takes a backslash for a slash, `%41` for A, and finds no way to a control character."""

MODES = (Mode.LOG, Mode.MIRROR)
FORM = LocalForm(
    "Delta table",
    "Write delta:///table or delta:///folder/, relative to the first mirror root.",
    parameters=("mode",),
)


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
        if taken or _UNFIT.search(table_name) or len(table_name.encode()) > NAME_BYTES_MAX:
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
    given = FORM.read(uri)
    mode = given.parameters.get("mode", Mode.LOG.value)
    if mode not in [each.value for each in MODES]:
        raise FORM.bad(uri, f"mode is {' or '.join(each.value for each in MODES)}")
    path = FORM.folder(uri, given.path, roots)
    if _UNFIT.search(given.path.replace("/", "")):
        raise FORM.bad(uri, "no backslash, control character or %41 is part of the path")
    return DeltaTarget(path, given.path.endswith("/"), Mode(mode))
