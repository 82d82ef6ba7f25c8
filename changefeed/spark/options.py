"""The options of the source, checked before anything is asked of a server."""

from __future__ import annotations

import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass

from .client import ExportClient, TableAddress

TIMESTAMP_MAX = (1 << 63) - 1
KNOWN = (
    "url",
    "table",
    "database",
    "token",
    "certificate",
    "as_of",
    "columns",
    "start",
    "initial_scan",
    "schema_at",
    "own_timestamps",
)
OF_STREAMS = ("start", "initial_scan", "schema_at", "own_timestamps")


class OptionRefused(ValueError):
    """An option that is missing, unknown or wrong; the message says which and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """`as_of` is a batch read's timestamp, now if None. `start` is where a stream begins (now if
    None), and `initial_scan` whether its first batch is the table as of then. `schema_at` is when a
    stream had its columns that comes back to a table, which may be dropped by now. With
    `own_timestamps` each row of the initial scan bears the time when it was written, and not the
    scan's."""

    address: TableAddress
    as_of: int | None
    columns: tuple[str, ...] | None
    start: int | None
    initial_scan: bool
    schema_at: int | None
    own_timestamps: bool

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
        if "as_of" in options and any(name in options for name in OF_STREAMS):
            raise OptionRefused(f"as_of is for batch reads, {', '.join(OF_STREAMS)} for streams")
        return cls(
            address=_address(options),
            as_of=_timestamp(options, "as_of"),
            columns=_columns(options),
            start=_timestamp(options, "start"),
            initial_scan=_yes_or_no(options, "initial_scan"),
            schema_at=_timestamp(options, "schema_at"),
            own_timestamps=_yes_or_no(options, "own_timestamps"),
        )


def _address(options: Mapping[str, str]) -> TableAddress:
    try:
        address = TableAddress.of(
            options["url"],
            options["table"],
            options.get("database", "defaultdb"),
            token=options.get("token"),
            certificate=options.get("certificate"),
        )
        ExportClient(address)
    except ValueError as error:
        raise OptionRefused(f"option {error}") from error
    except ssl.SSLError as error:
        raise OptionRefused("option certificate: write one in PEM") from error
    return address


def _timestamp(options: Mapping[str, str], name: str) -> int | None:
    text = options.get(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal()) or not 0 < int(text) <= TIMESTAMP_MAX:
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
    names: object = text.split(",")
    if text.lstrip().startswith("["):
        try:
            names = json.loads(text)
        except ValueError as error:
            raise OptionRefused(f"option 'columns': {text!r}: {error}") from error
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise OptionRefused(f"option 'columns': {text!r}: a list has names and nothing else")
    found = tuple(name.strip() for name in names)
    if not found or "" in found or len(set(found)) < len(found):
        raise OptionRefused(f"option 'columns': {text!r}: name one at least, and each once")
    return found


def _yes_or_no(options: Mapping[str, str], name: str) -> bool:
    text = options.get(name, "no").lower()
    if text not in ("yes", "no"):
        raise OptionRefused(f"option {name!r} is yes or no, not {text!r}")
    return text == "yes"
