"""The options of the source, checked before anything is asked of a server."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from .client import TableAddress

KNOWN = ("url", "table", "database", "as_of", "columns", "start", "initial_scan")


class OptionRefused(ValueError):
    """An option that is missing, unknown or wrong; the message says which and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """`as_of` is a batch read's timestamp, now if None. `start` is where a stream begins (now if
    None), and `initial_scan` whether its first batch is the table as of then."""

    address: TableAddress
    as_of: int | None
    columns: tuple[str, ...] | None
    start: int | None
    initial_scan: bool

    @classmethod
    def read(cls, given: Mapping[str, str]) -> SourceOptions:
        """Raises OptionRefused. Names are case-insensitive, as Spark's are."""
        options = {name.lower(): value for name, value in given.items() if name != "path"}
        unknown = sorted(set(options) - set(KNOWN))
        if unknown:
            raise OptionRefused(f"unknown option {unknown[0]!r}: there are {', '.join(KNOWN)}")
        for name in ("url", "table"):
            if not options.get(name):
                raise OptionRefused(f'option "{name}" is missing: .option("{name}", …)')
        return cls(
            address=TableAddress(
                options["url"], options["table"], options.get("database", "defaultdb")
            ),
            as_of=_timestamp(options, "as_of"),
            columns=_columns(options),
            start=_timestamp(options, "start"),
            initial_scan=_yes_or_no(options, "initial_scan"),
        )


def _timestamp(options: Mapping[str, str], name: str) -> int | None:
    text = options.get(name)
    if text is None:
        return None
    if not text.isdecimal() or int(text) <= 0:
        raise OptionRefused(
            f"option {name!r}: {text!r} is not a timestamp: write the integer that"
            " a previous read's _commit_timestamp or as_of has"
        )
    return int(text)


def _columns(options: Mapping[str, str]) -> tuple[str, ...] | None:
    """A JSON list, or names between commas."""
    text = options.get("columns")
    if text is None:
        return None
    names = json.loads(text) if text.lstrip().startswith("[") else text.split(",")
    found = tuple(str(name).strip() for name in names)
    if not found or "" in found or len(set(found)) < len(found):
        raise OptionRefused(f"option 'columns': {text!r}: name one at least, and each once")
    return found


def _yes_or_no(options: Mapping[str, str], name: str) -> bool:
    text = options.get(name, "no").lower()
    if text not in ("yes", "no"):
        raise OptionRefused(f"option {name!r} is yes or no, not {text!r}")
    return text == "yes"
