"""COPY's options, as the parser hands them on."""

from __future__ import annotations

from enum import Enum

from .statement import Syntax


class CopyFormat(Enum):
    TEXT = "text"
    CSV = "csv"
    BINARY = "binary"


class CopyOptions(Syntax):
    """The form of rows. `header` says that the first line names the columns, and is passed over
    when it is read."""

    format: CopyFormat = CopyFormat.TEXT
    delimiter: str = "\t"
    null: str = "\\N"
    header: bool = False
    quote: str = '"'
    escape: str = '"'
