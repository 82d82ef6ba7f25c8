"""README and every document under docs/ on a clean store: what they say to do works, and says what
they say it does."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.system.documents.blocks import commands
from tests.system.documents.walker import Walk

pytestmark = [pytest.mark.system, pytest.mark.filterwarnings("ignore::DeprecationWarning")]

ROOT = Path(__file__).parents[3]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
TWICE = frozenset({"README.md"})
"""What a reader will do again in the same folder."""


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.stem)
def test_a_document_does_what_it_says(document: Path, tmp_path: Path) -> None:
    steps = commands(document, ROOT)
    for _ in range((1 + (document.name in TWICE)) * bool(steps)):
        walk = Walk(document.name, tmp_path)
        try:
            walk.walk(steps)
        finally:
            walk.close()
        assert walk.failures == [], "\n\n".join(walk.failures)
