"""Which documents are equal: `{"a": 1}` and `{"a": 1.0}`, whatever zeros end their numbers."""

from __future__ import annotations

import re

_TEXT_OR_FRACTION = re.compile(r'"(?:[^"\\]|\\.)*"|\.[0-9]+')


ZEROS = r"\.[0-9]*0([^0-9]|$)"
"""A regular expression that finds a number with zeros at the end of its fraction."""
_zeros_in = re.compile(ZEROS).search


def same(document: str) -> str:
    """A text that equal documents share: without zeros at the ends of fractions."""
    return _TEXT_OR_FRACTION.sub(_trimmed, document) if _zeros_in(document) else document


def _trimmed(found: re.Match[str]) -> str:
    part = found[0]
    return part if part[0] == '"' else part.rstrip("0").rstrip(".")
