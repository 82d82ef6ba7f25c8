"""Names of days and months in English."""

from __future__ import annotations

DAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip
NAME_WIDTH = 9
"""Letters of the longest, September."""


def cased(name: str, like: str) -> str:
    """The name in capitals, in small letters or with a capital first, as `like` is."""
    if like.isupper():
        return name.upper()
    return name.lower() if like.islower() else name
