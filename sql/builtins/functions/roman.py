"""Roman numbers, as to_char() writes them."""

from __future__ import annotations

ROMAN_WIDTH = 15
"""Letters of the longest, 3888."""
_PLACES = ("", "I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX")
_LETTERS = ("IVX", "XLC", "CDM", "M")
MONTHS = ("I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII")


def roman(number: int) -> str:
    """What is not within 1 and 3999 is a row of `#`."""
    if not 0 < number < 4000:
        return "#" * ROMAN_WIDTH
    digits = f"{number}"
    return "".join(
        _PLACES[int(digit)].translate(str.maketrans("IVX", f"{_LETTERS[place]:M<3}"))
        for place, digit in zip(reversed(range(len(digits))), digits, strict=True)
    )
