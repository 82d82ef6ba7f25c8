"""Thousands of statements on this server and on PostgreSQL 15: what differs is documented."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.servers import postgres_server
from tests.harness.server_process import ServerProcess
from tests.system.differential.classes import CLASSES, class_of
from tests.system.differential.comparison import Comparison, databases
from tests.system.differential.topic import topics

pytestmark = pytest.mark.system

DOCUMENT = Path(__file__).parents[2] / "docs/sql-differences.md"
STATEMENTS_MIN = 2_000
CLASSES_MAX = 30


@pytest.fixture(scope="module")
def comparison(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Comparison]:
    """All statements, run once on both."""
    folder = tmp_path_factory.mktemp("differential")
    made = Comparison()
    with postgres_server(folder) as theirs, ServerProcess(folder / "t", "--insecure") as ours:
        for topic in topics():
            with databases(theirs, ours.pg_port, topic.name) as clients:
                made.run(topic, *clients)
        yield made


def test_each_difference_from_postgres_is_documented(comparison: Comparison) -> None:
    assert comparison.statements >= STATEMENTS_MIN
    unknown = [found for found in comparison.differences if class_of(found) is None]
    assert not unknown, "\n\n".join(map(str, unknown[:20]))


def test_each_documented_class_is_seen(comparison: Comparison) -> None:
    seen = {found.name for each in comparison.differences if (found := class_of(each))}
    assert seen == {known.name for known in CLASSES}


def test_the_document_has_a_section_for_each_class() -> None:
    lines = DOCUMENT.read_text().splitlines()
    sections = [line.removeprefix("## ") for line in lines if line.startswith("## ")]
    assert sorted(sections) == sorted(known.name for known in CLASSES)
    assert len(sections) <= CLASSES_MAX
