"""Topics: files of statements that are run in order, on a database of their own.

A statement ends with a semicolon at the end of a line. Lines that begin with `--` are comments.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tests.system.differential.document_generator import generated_documents
from tests.system.differential.generator import generated_statements
from tests.system.differential.matrix import matrix_statements

FOLDER = Path(__file__).parent / "statements"
SEED = 20261121
GENERATED = {
    "generated": generated_statements,
    "documents_generated": generated_documents,
    "matrix": matrix_statements,
}
"""Topics whose statements are made by a seed, behind the tables of their own file."""


@dataclass(frozen=True, slots=True)
class Topic:
    name: str
    statements: tuple[str, ...]


def topics(seed: int = SEED) -> list[Topic]:
    """Every file of statements, and what is made by the seed."""
    read = [Topic(path.stem, _statements(path)) for path in sorted(FOLDER.glob("*.sql"))]
    return [
        Topic(topic.name, topic.statements + GENERATED[topic.name](seed))
        if topic.name in GENERATED
        else topic
        for topic in read
    ]


def _statements(path: Path) -> tuple[str, ...]:
    found: list[str] = []
    lines: list[str] = []
    for line in path.read_text().splitlines():
        if line.startswith("--") or not line.strip():
            continue
        lines.append(line)
        if line.rstrip().endswith(";"):
            found.append("\n".join(lines).rstrip().removesuffix(";"))
            lines = []
    assert not lines, f"{path.name} ends within a statement: {lines}"
    return tuple(found)
