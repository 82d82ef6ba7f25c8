"""Statements as texts, made of what a request names."""

from __future__ import annotations

from collections.abc import Mapping

from ...catalog.descriptors.names import quote_identifier


def qualified(name: str) -> str:
    """A name that dots qualify."""
    return ".".join(quote_identifier(part) for part in name.split("."))


def literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def with_options(options: Mapping[str, str | None]) -> str:
    """` WITH …` of a changefeed, or nothing. An option without a value has None."""
    if not options:
        return ""
    return " WITH " + ", ".join(
        quote_identifier(name) + ("" if value is None else f" = {literal(value)}")
        for name, value in options.items()
    )
