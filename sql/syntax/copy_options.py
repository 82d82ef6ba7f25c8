"""COPY's options, as the parser hands them on."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class CopyFormat(Enum):
    TEXT = "text"
    CSV = "csv"
    BINARY = "binary"


class Header(Enum):
    """The first line of CSV and text."""

    NONE = "none"
    NAMES = "names"  # written out, and skipped when read
    MATCH = "match"  # read, and must name the columns


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyOptions:
    """How rows are written. `force_quote` is None for all columns.

    Of the columns of `force_null` a quoted value that reads as NULL is one too; of those of
    `force_not_null` none is, and what reads as NULL is a text.
    """

    format: CopyFormat = CopyFormat.TEXT
    delimiter: str = "\t"
    null: str = "\\N"
    header: Header = Header.NONE
    quote: str = '"'
    escape: str = '"'
    force_quote: tuple[str, ...] | None = ()
    force_null: tuple[str, ...] = ()
    force_not_null: tuple[str, ...] = ()
