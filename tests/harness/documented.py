"""Commands of docs/sinks.md, word for word, for tests that run them."""

from __future__ import annotations

from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def documented_sql(heading: str) -> list[str]:
    """The blocks of SQL in a section of docs/sinks.md, whatever its level."""
    text = (DOCS / "sinks.md").read_text()
    marks = [mark for mark in ("##", "###") if f"\n{mark} {heading}\n" in text]
    assert len(marks) == 1, heading
    section = text.partition(f"\n{marks[0]} {heading}\n")[2].partition("\n## ")[0]
    return [block.partition("```")[0] for block in section.split("```sql\n")[1:]]
