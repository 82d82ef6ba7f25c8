"""docs/limits.md shows the bounds that the code has, and each of them holds.

TAILRACE_REWRITE=1 writes the table anew.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tailrace.kvlayer.settings import Setting
from tests.limits import exceeding
from tests.limits.table import HEAD, LIMITS, Limit, Unit, table

DOCUMENT = Path(__file__).parents[2] / "docs" / "limits.md"

SMALL = {
    Unit.COUNT: exceeding.SMALL,
    Unit.BYTES: exceeding.SMALL_BYTES,
    Unit.CHARACTERS: exceeding.SMALL_BYTES,
    Unit.SECONDS: exceeding.SMALL_SECONDS,
    Unit.MILLISECONDS: int(1000 * exceeding.SMALL_SECONDS),
}
AS_IT_IS = {"key", "mirror_name", *exceeding.BY_BOUNDS}
"""What is small already, or what a smaller bound would keep from starting."""


def test_the_document_has_the_table() -> None:
    text = DOCUMENT.read_text()
    begin = text.index(HEAD)
    end = text.index("\n\n", begin) + 1
    if os.environ.get("TAILRACE_REWRITE"):
        DOCUMENT.write_text(text[:begin] + table() + text[end:])
        return
    assert text[begin:end] == table()


@pytest.mark.parametrize("limit", LIMITS, ids=lambda limit: f"{limit.beyond} of {limit.of}")
def test_what_is_beyond_is_answered(
    limit: Limit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if limit.beyond == "value":
        monkeypatch.setattr(limit.source, limit.name, exceeding.SMALL_VALUE_BYTES)
    elif limit.beyond not in AS_IT_IS and not isinstance(limit.source, Setting):
        monkeypatch.setattr(limit.source, limit.name, SMALL[limit.unit])
    assert getattr(exceeding, limit.beyond)(limit, tmp_path) == limit.answer
