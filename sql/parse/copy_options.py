"""COPY's options, as the parser hands them on."""

from __future__ import annotations

from ...catalog.values.errors import SQLError
from ..syntax.copy_options import CopyFormat, CopyOptions, Header


def build_options(
    given: dict[str, str | bool | tuple[str, ...] | None], *, reads: bool
) -> CopyOptions:
    """The options that were written, with the defaults of their format. Raises SQLError."""
    name = str(given.get("format", "text")).lower()
    try:
        format = CopyFormat(name)
    except ValueError:
        raise SQLError(
            "22023", f'COPY format "{name}" not recognized', hint="Formats: text, csv, binary."
        ) from None
    csv = format is CopyFormat.CSV
    for option in ("quote", "escape", "force_quote", "force_null", "force_not_null"):
        if option in given and not csv:
            raise SQLError("0A000", f"COPY {option.upper()} available only in CSV mode")
    for option, reading in _ONE_WAY.items():
        if option in given and reading is not reads:
            way = "FROM" if reading else "TO"
            raise SQLError("0A000", f"COPY {option.upper()} only available using COPY {way}")
    if format is CopyFormat.BINARY:
        for option in ("delimiter", "null", "header"):
            if given.get(option):
                raise SQLError("42601", f"cannot specify {option.upper()} in BINARY mode")
    quote = str(given.get("quote", '"'))
    force_quote = given.get("force_quote", ())
    assert force_quote is None or isinstance(force_quote, tuple), force_quote
    options = CopyOptions(
        format=format,
        delimiter=str(given.get("delimiter", "," if csv else "\t")),
        null=str(given.get("null", "" if csv else "\\N")),
        header=_header(given.get("header", False)),
        quote=quote,
        escape=str(given.get("escape", quote)),
        force_quote=force_quote,
        force_null=_names(given, "force_null"),
        force_not_null=_names(given, "force_not_null"),
    )
    _check(options)
    return options


_ONE_WAY = {"force_quote": False, "force_null": True, "force_not_null": True}
"""Options that are for reading alone, or for writing."""


def _names(given: dict[str, str | bool | tuple[str, ...] | None], option: str) -> tuple[str, ...]:
    names = given.get(option, ())
    assert isinstance(names, tuple), (option, names)
    return names


def _header(value: object) -> Header:
    written = str(value).lower()
    if written == "match":
        return Header.MATCH
    if written in ("true", "on", "1"):
        return Header.NAMES
    if written in ("false", "off", "0"):
        return Header.NONE
    raise SQLError("42601", "header requires a Boolean value or MATCH")


def _check(options: CopyOptions) -> None:
    for what, value in (
        ("delimiter", options.delimiter),
        ("quote", options.quote),
        ("escape", options.escape),
    ):
        if len(value) != 1 or not value.isascii():
            raise SQLError("0A000", f"COPY {what} must be a single one-byte character")
        if value in "\r\n":
            raise SQLError("22023", f"COPY {what} cannot be newline or carriage return")
    if "\n" in options.null or "\r" in options.null:
        raise SQLError("22023", "COPY null representation cannot use newline or carriage return")
    if options.delimiter in options.null:
        raise SQLError("0A000", "COPY delimiter must not appear in the NULL specification")
    if options.format is CopyFormat.CSV:
        if options.delimiter == options.quote:
            raise SQLError("0A000", "COPY delimiter and quote must be different")
        if options.quote in options.null:
            raise SQLError("0A000", "CSV quote character must not appear in the NULL specification")
    elif options.delimiter in "\\.abcdefghijklmnopqrstuvwxyz0123456789":
        raise SQLError("22023", f'COPY delimiter cannot be "{options.delimiter}"')
