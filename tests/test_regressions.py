"""Every test that `tests/REGRESSIONS.md` names is there.

Files are read as text: nothing of what is named is imported.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
PAGE = TESTS / "REGRESSIONS.md"
GROUPS = [
    "Delivery and order",
    "Schema changes",
    "Low latency (locked tables)",
    "Protection and retries",
    "Leases",
    "Range feeds",
    "Targets",
    "Operation",
]
ISSUES = re.compile(r"—|#\d+( #\d+)*")
IDS = re.compile(r"`[^`\s]+`(, `[^`\s]+`)*")
REASON = re.compile(r"does not apply: because .+\.")


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a table of the page."""

    line: int
    group: str
    cells: tuple[str, ...]

    def __str__(self) -> str:
        return f"REGRESSIONS.md:{self.line}: {' | '.join(self.cells[:2])}"

    @property
    def ids(self) -> list[str]:
        """What the row names; nothing where it does not apply."""
        return re.findall(r"`([^`]+)`", self.cells[-1])


def rows_of(text: str) -> Iterator[Row]:
    group = ""
    for number, line in enumerate(text.splitlines(), start=1):
        if line.startswith("## "):
            group = line.removeprefix("## ")
        if line.startswith("|") and not line.startswith(("| --- |", "| CockroachDB |")):
            cells = tuple(cell.strip() for cell in line.strip("|").split("|"))
            yield Row(number, group, cells)


ROWS = list(rows_of(PAGE.read_text()))


def missing(name: str) -> str | None:
    """Says what is not there of a file, or of a test function in it; None when all of it is."""
    path, _, function = name.partition("::")
    if not (TESTS / path).is_file():
        return f"there is no file tests/{path}"
    text = (TESTS / path).read_text()
    if function and not re.search(rf"^def {re.escape(function)}\(", text, re.MULTILINE):
        return f"tests/{path} has no function {function}"
    return None


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"line {row.line}")
def test_row_names_what_is_there(row: Row) -> None:
    lacking = [what for what in map(missing, row.ids) if what is not None]
    assert not lacking, f"{row}: {'; '.join(lacking)}"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"line {row.line}")
def test_row_has_its_form(row: Row) -> None:
    """Issues, or a dash; a sentence; ids of tests, or why there are none."""
    assert len(row.cells) == 3, row
    issues, lesson, tests = row.cells
    assert ISSUES.fullmatch(issues), f"{row}: the issues are {issues!r}"
    assert lesson.endswith("."), f"{row}: the lesson is no sentence"
    assert IDS.fullmatch(tests) or REASON.fullmatch(tests), f"{row}: the tests are {tests!r}"
    for name in row.ids:
        path, named, function = name.partition("::")
        is_test = path.rpartition("/")[2].startswith("test_")
        assert is_test == bool(named), f"{row}: {name} is no whole id of a test"
        assert function.startswith("test_") == bool(named), f"{row}: {function} is no test"


def test_every_group_has_rows() -> None:
    assert list(dict.fromkeys(row.group for row in ROWS)) == GROUPS
