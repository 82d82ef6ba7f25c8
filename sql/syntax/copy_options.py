"""COPY's options, as the parser hands them on."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class CopyFormat(Enum):
    TEXT = "text"
    CSV = "csv"
    BINARY = "binary"


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyOptions:
    """How rows are written. `header` says that the first line names the columns, and is passed over
    when it is read."""

    format: CopyFormat = CopyFormat.TEXT
    delimiter: str = "\t"
    null: str = "\\N"
    header: bool = False
    quote: str = '"'
    escape: str = '"'
